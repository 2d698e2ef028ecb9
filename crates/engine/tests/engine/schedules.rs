//! Schedules: when they fire, and what a stop, a change or another leader does to them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use duly_core::filter::Filter;
use duly_core::lease::Lease;
use duly_core::limits::LOOK_AHEAD;
use duly_core::name::{ScheduleName, TenantName, TypeName};
use duly_core::ports::store::{
    Expected, ListSchedules, ListTasks, RunStatus, SlotOutcome, SlotRecord,
};
use duly_core::schedule::{
    Rule, SCHEDULE_LABEL, SLOT_LABEL, ScheduleDraft, ScheduleStatus, SkipReason, SlotRun, Template,
};
use duly_core::state::Status;
use duly_core::task::Task;
use duly_core::time::Timestamp;
use duly_core::workflow::plan::Needed;
use duly_core::workflow::request::{Member, Members, WorkflowSpec};
use duly_core::workflow::{Condition, WorkflowStatus};
use duly_engine::Engine;
use duly_engine::command::schedules::{NewSchedule, ScheduleError, ScheduleView};
use duly_engine::engine::LocalWorker;
use duly_engine::random::OsRandom;

use crate::world::{CONFIG, TTL, World, draft, finish, pass, settle, success};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// How late a task may start in paused time.
const LATE: Duration = Duration::from_millis(5);

pub(crate) fn tenant() -> TenantName {
    TenantName::default_tenant()
}

pub(crate) fn name(name: &str) -> ScheduleName {
    ScheduleName::given(name).unwrap()
}

pub(crate) fn every(interval: &str) -> ScheduleDraft {
    ScheduleDraft { every: Some(interval.to_owned()), ..ScheduleDraft::default() }
}

pub(crate) fn overlapping(overlap: &str, draft: ScheduleDraft) -> ScheduleDraft {
    ScheduleDraft { overlap: Some(overlap.to_owned()), ..draft }
}

fn rule(draft: ScheduleDraft) -> Rule {
    draft.read().unwrap()
}

fn echo() -> Template {
    Template::task(draft("echo").check().unwrap()).unwrap()
}

fn new(draft: ScheduleDraft, template: Template) -> NewSchedule {
    NewSchedule {
        rule: rule(draft),
        template,
        status: ScheduleStatus::Active,
        note: None,
        labels: BTreeMap::new(),
        managed: false,
    }
}

impl World {
    /// Creates or replaces the schedule `s`.
    pub(crate) async fn put(&self, draft: ScheduleDraft) -> ScheduleView {
        self.put_named("s", new(draft, echo())).await
    }

    async fn put_named(&self, called: &str, new: NewSchedule) -> ScheduleView {
        let (tenant, name) = (tenant(), name(called));
        let put = self.engine.put_schedule(&tenant, &name, new, Expected::Any);
        put.await.unwrap().0
    }

    pub(crate) async fn switch(&self, status: ScheduleStatus) -> ScheduleView {
        let (tenant, name) = (tenant(), name("s"));
        let switch = self.engine.switch_schedule(&tenant, &name, status, None, Expected::Any);
        switch.await.unwrap()
    }

    async fn trigger(&self) -> SlotRecord {
        // Two triggers of one millisecond are one.
        pass(Duration::from_millis(2)).await;
        self.engine.trigger_schedule(&tenant(), &name("s")).await.unwrap()
    }

    /// The records of `s`, oldest slot first.
    pub(crate) async fn records(&self) -> Vec<SlotRecord> {
        let records = self.engine.slot_records(&tenant(), &name("s")).await.unwrap();
        let mut records = records.unwrap();
        records.reverse();
        records
    }

    /// All tasks of a schedule, the first due first.
    pub(crate) async fn tasks_of(&self, schedule: &str) -> Vec<Task> {
        let labels = BTreeMap::from([(SCHEDULE_LABEL.to_owned(), schedule.to_owned())]);
        let filter = Filter { labels, ..Filter::default() };
        let page = ListTasks { tenant: tenant(), filter, before: None, limit: 10_000 };
        let mut tasks = self.engine.list(page).await.unwrap().tasks;
        tasks.reverse();
        tasks
    }

    /// Runs tasks for some time. Returns their slots, and how late each started.
    pub(crate) async fn work(&self, time: Duration) -> Vec<(Timestamp, Duration)> {
        let mut ran = Vec::new();
        let working = async {
            loop {
                let leases = self.source.claim(10).await.unwrap();
                for lease in &leases {
                    let slot = slot_of(&self.get(lease.task).await);
                    ran.push((slot, self.now().await.since(slot)));
                }
                self.end(leases).await;
            }
        };
        assert!(tokio::time::timeout(time, working).await.is_err());
        ran
    }

    async fn end(&self, leases: Vec<Lease>) {
        let ends = leases.iter().map(|lease| finish(lease, success())).collect();
        self.source.finish(ends).await.unwrap();
    }

    /// Another process takes over the store.
    async fn start_again(&mut self) {
        self.engine = Engine::start(self.store.clone(), Arc::new(OsRandom::new()), CONFIG);
        let types = vec![TypeName::new("echo").unwrap()];
        let worker = LocalWorker { name: "next".to_owned(), types, queues: vec![] };
        self.source = self.engine.open_worker(worker).await.unwrap();
    }
}

fn slot_of(task: &Task) -> Timestamp {
    Timestamp::parse(&task.labels[SLOT_LABEL]).unwrap()
}

pub(crate) fn slots(tasks: &[Task]) -> Vec<Timestamp> {
    tasks.iter().map(slot_of).collect()
}

pub(crate) fn skipped(record: &SlotRecord) -> Option<SkipReason> {
    match record.outcome {
        SlotOutcome::Skipped(reason) => Some(reason),
        SlotOutcome::Ran(_) => None,
    }
}

/// How often each outcome occurs; runs count as nothing skipped.
fn tally(records: &[SlotRecord]) -> BTreeMap<Option<&'static str>, usize> {
    let mut tally = BTreeMap::new();
    for record in records {
        *tally.entry(skipped(record).map(SkipReason::as_str)).or_default() += 1;
    }
    tally
}

#[tokio::test(start_paused = true)]
async fn every_slot_starts_one_task_on_time() {
    let world = World::new().await;
    let start = world.now().await;
    let view = world.put(every("7s")).await;
    let expected = view.rule.slots(start, start.plus(MINUTE * 5), 100);
    assert_eq!(view.next, expected.first().copied());
    let ran = world.work(MINUTE * 5).await;
    assert_eq!(ran.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), expected);
    assert!(ran.iter().all(|(_, late)| *late <= LATE), "{ran:?}");
    let tasks = world.tasks_of("s").await;
    assert_eq!(slots(&tasks), expected);
    let records = world.records().await;
    assert_eq!(records.iter().map(|record| record.slot).collect::<Vec<_>>(), expected);
    assert!(records.iter().all(|it| it.status == Some(RunStatus::Task(Status::Success))));
}

#[tokio::test(start_paused = true)]
async fn a_schedule_with_one_slot_fires_once() {
    let world = World::new().await;
    let at = world.now().await.plus(90 * SECOND);
    let draft = ScheduleDraft { at: Some(at.to_string()), ..ScheduleDraft::default() };
    world.put(draft).await;
    let ran = world.work(MINUTE * 60).await;
    assert_eq!(ran.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), [at]);
    let view = world.engine.schedule(&tenant(), &name("s")).await.unwrap().unwrap();
    assert_eq!(view.next, None);
}

#[tokio::test(start_paused = true)]
async fn another_process_goes_on_without_a_gap_and_without_a_second_task() {
    let mut world = World::new().await;
    let start = world.now().await;
    let view = world.put(every("10s")).await;
    let mut ran = BTreeSet::new();
    for _ in 0..5 {
        ran.extend(world.work(23 * SECOND).await.into_iter().map(|(slot, _)| slot));
        world.engine.close().await;
        // Less than what counts as missed.
        pass(4 * SECOND).await;
        world.start_again().await;
    }
    ran.extend(world.work(20 * SECOND).await.into_iter().map(|(slot, _)| slot));
    let expected = view.rule.slots(start, world.now().await, 100);
    assert_eq!(ran.into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(slots(&world.tasks_of("s").await), expected);
}

#[tokio::test(start_paused = true)]
async fn only_the_leader_decides_and_the_next_one_goes_on() {
    let world = World::among_others().await;
    let start = world.now().await;
    let view = world.put(every("5s")).await;
    let first = world.work(MINUTE).await;
    world.faults.another_leads.store(true, Ordering::SeqCst);
    pass(TTL).await;
    let meanwhile = world.faults.calls("decide_slots");
    pass(20 * SECOND).await;
    assert_eq!(world.faults.calls("decide_slots"), meanwhile);
    world.faults.another_leads.store(false, Ordering::SeqCst);
    let second = world.work(MINUTE * 2 + SECOND).await;
    let ran: Vec<_> = first.into_iter().chain(second).map(|(slot, _)| slot).collect();
    let records = world.records().await;
    let decided: Vec<_> = records.iter().map(|record| record.slot).collect();
    assert_eq!(decided, view.rule.slots(start, world.now().await, 100), "none is left out");
    let started: Vec<_> =
        records.iter().filter(|it| skipped(it).is_none()).map(|it| it.slot).collect();
    assert_eq!(ran, started, "each runs once");
}

/// What becomes of the slots of a stop of ten minutes.
async fn after_a_stop(misfire: &str, overlap: &str) -> (Vec<SlotRecord>, Vec<Task>) {
    let mut world = World::new().await;
    let draft = ScheduleDraft { misfire: Some(misfire.to_owned()), ..every("1m") };
    world.put(overlapping(overlap, draft)).await;
    settle().await;
    world.engine.close().await;
    pass(10 * MINUTE).await;
    world.start_again().await;
    settle().await;
    (world.records().await, world.tasks_of("s").await)
}

#[tokio::test(start_paused = true)]
async fn after_a_stop_the_misfire_rule_decides() {
    // Ten slots were missed, the last of them less than a minute ago: that one is on time.
    for (misfire, missed) in [("skip", 9), ("latest", 9)] {
        let (records, tasks) = after_a_stop(misfire, "cancelOther").await;
        assert_eq!(tally(&records), BTreeMap::from([(None, 1), (Some("MISSED"), missed)]));
        assert_eq!(slots(&tasks), [records[9].slot], "{misfire}");
    }
    let (records, tasks) = after_a_stop("all", "allow").await;
    // With the one that is ahead.
    assert_eq!(tally(&records), BTreeMap::from([(None, 11)]));
    assert_eq!(tasks.len(), 11);
    let (records, tasks) = after_a_stop("all", "skip").await;
    assert_eq!(tally(&records), BTreeMap::from([(None, 1), (Some("OVERLAP"), 9)]));
    assert_eq!(slots(&tasks), [records[0].slot]);
    let (records, _) = after_a_stop("all", "bufferOne").await;
    assert_eq!(tally(&records), BTreeMap::from([(None, 2), (Some("BUFFERED"), 8)]));
}

#[tokio::test(start_paused = true)]
async fn the_latest_missed_slot_runs_and_those_too_old_do_not() {
    for (misfire, outcome) in [("latest", None), ("skip", Some("MISSED"))] {
        let mut world = World::new().await;
        let draft = ScheduleDraft {
            misfire: Some(misfire.to_owned()),
            catch_up_seconds: Some(1800.0),
            ..every("10m")
        };
        world.put(draft).await;
        settle().await;
        world.engine.close().await;
        pass(65 * MINUTE).await;
        world.start_again().await;
        settle().await;
        let records = world.records().await;
        let outcomes: Vec<_> =
            records.iter().map(|record| skipped(record).map(SkipReason::as_str)).collect();
        let old = Some("TOO_OLD");
        let missed = Some("MISSED");
        assert_eq!(outcomes, [old, old, old, old, missed, missed, outcome], "{misfire}");
    }
}

#[tokio::test(start_paused = true)]
async fn runs_that_may_overlap_are_stored_ahead_and_start_without_the_coordinator() {
    let world = World::among_others().await;
    world.put(overlapping("allow", every("10s"))).await;
    pass(TTL).await;
    let waiting = world.tasks_of("s").await;
    assert!(waiting.len() >= 5, "{}", waiting.len());
    let horizon = world.now().await.plus(LOOK_AHEAD);
    assert!(waiting.iter().all(|task| task.run_at <= horizon));
    world.faults.another_leads.store(true, Ordering::SeqCst);
    pass(TTL).await;
    let calls = world.faults.calls("decide_slots");
    let ran = world.work(25 * SECOND).await;
    assert_eq!(world.faults.calls("decide_slots"), calls);
    let on_time: Vec<_> = ran.iter().filter(|(_, late)| *late <= LATE).collect();
    assert!(on_time.len() >= 2, "{ran:?}");
}

#[tokio::test(start_paused = true)]
async fn other_runs_are_decided_when_their_slot_has_come() {
    let world = World::new().await;
    world.put(every("1m")).await;
    pass(19 * SECOND).await;
    assert!(world.tasks_of("s").await.is_empty());
    pass(2 * SECOND).await;
    assert_eq!(world.tasks_of("s").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pause_withdraws_what_waits_and_a_resumed_schedule_goes_on_from_then() {
    for overlap in ["allow", "skip"] {
        let world = World::new().await;
        world.put(overlapping(overlap, every("10s"))).await;
        let before = world.work(35 * SECOND).await.len();
        let view = world.switch(ScheduleStatus::Paused).await;
        assert_eq!(view.next, None);
        assert!(world.work(MINUTE * 3 + SECOND).await.is_empty(), "{overlap}");
        assert_eq!(world.tasks_of("s").await.len(), before);
        let resumed = world.now().await;
        let view = world.switch(ScheduleStatus::Active).await;
        assert_eq!(view.next, view.rule.next(resumed));
        let after = world.work(35 * SECOND).await;
        let expected = view.rule.slots(resumed, world.now().await, 100);
        assert_eq!(after.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), expected);
        let records = world.records().await;
        assert!(records.iter().all(|record| skipped(record).is_none()), "no slot was missed");
    }
}

#[tokio::test(start_paused = true)]
async fn an_edit_takes_effect_at_once() {
    for overlap in ["allow", "skip"] {
        let world = World::new().await;
        world.put(overlapping(overlap, every("10s"))).await;
        world.work(21 * SECOND).await;
        let edited = world.now().await;
        let view = world.put(overlapping(overlap, every("7s"))).await;
        let ran = world.work(MINUTE + SECOND).await;
        let expected = view.rule.slots(edited, world.now().await, 100);
        assert_eq!(ran.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), expected, "{overlap}");
        assert!(ran.iter().all(|(_, late)| *late <= LATE), "{ran:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn labels_and_notes_change_without_withdrawing_slots() {
    let world = World::new().await;
    let draft = || overlapping("allow", every("10s"));
    let before = world.put(draft()).await;
    settle().await;
    let waiting = slots(&world.tasks_of("s").await);
    let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    let new = NewSchedule { labels, note: Some("why".to_owned()), ..new(draft(), echo()) };
    let after = world.put_named("s", new).await;
    assert_eq!(after.schedule.generation, before.schedule.generation);
    assert_eq!((after.rule.labels["a"].as_str(), after.rule.note.as_deref()), ("b", Some("why")));
    settle().await;
    assert_eq!(slots(&world.tasks_of("s").await), waiting);
}

#[tokio::test(start_paused = true)]
async fn a_trigger_follows_the_overlap_rule() {
    let world = World::new().await;
    world.put(every("1h")).await;
    let first = world.trigger().await;
    assert_eq!(first.status, Some(RunStatus::Task(Status::Pending)));
    assert_eq!(skipped(&world.trigger().await), Some(SkipReason::Overlap));
    world.put(overlapping("bufferOne", every("1h"))).await;
    let first = world.trigger().await;
    let SlotOutcome::Ran(SlotRun::Task(first)) = first.outcome else { panic!("nothing runs") };
    let held = world.source.claim(1).await.unwrap();
    assert_eq!(held[0].task, first);
    let second = world.trigger().await;
    assert_eq!(second.status, Some(RunStatus::Task(Status::Blocked)));
    assert_eq!(skipped(&world.trigger().await), Some(SkipReason::Buffered));
    world.end(held).await;
    let next = world.source.claim(1).await.unwrap();
    assert_eq!(second.outcome, SlotOutcome::Ran(SlotRun::Task(next[0].task)));
    world.put(overlapping("cancelOther", every("1h"))).await;
    let third = world.trigger().await;
    assert_eq!(third.status, Some(RunStatus::Task(Status::Pending)));
    assert_eq!(world.get(next[0].task).await.status, Status::Cancelled);
    let told = world.source.taken_back().await;
    assert_eq!(told[0].task, next[0].task, "its worker is told");
}

#[tokio::test(start_paused = true)]
async fn a_trigger_runs_a_paused_schedule_and_moves_no_slot() {
    let world = World::new().await;
    world.put(every("10s")).await;
    world.switch(ScheduleStatus::Paused).await;
    let run = world.trigger().await;
    assert!(matches!(run.outcome, SlotOutcome::Ran(SlotRun::Task(_))));
    assert_ne!(run.slot.millis() % 1000, 0);
    assert_eq!(world.work(MINUTE).await.len(), 1);
    let unknown = world.engine.trigger_schedule(&tenant(), &name("other")).await;
    assert!(matches!(unknown, Err(ScheduleError::NotFound)));
}

#[tokio::test(start_paused = true)]
async fn what_another_node_changes_is_known_within_a_minute() {
    let world = World::among_others().await;
    world.put(every("5s")).await;
    world.work(10 * SECOND + SECOND / 2).await;
    // Past the use cases: nothing tells this node.
    let delete = duly_core::ports::store::DeleteSchedule {
        tenant: tenant(),
        name: name("s"),
        managed: false,
        expected: Expected::Any,
    };
    let view = world.engine.schedule(&tenant(), &name("s")).await.unwrap().unwrap();
    let put = duly_core::ports::store::PutSchedule {
        id: view.schedule.id,
        tenant: tenant(),
        name: name("s"),
        definition: duly_core::schedule::Definition::new(&rule(every("3s")), &echo()),
        labels: BTreeMap::new(),
        status: ScheduleStatus::Active,
        note: None,
        managed: false,
        expected: Expected::Any,
    };
    let edited = world.now().await;
    world.store.put_schedule(put).await.unwrap();
    let ran = world.work(22 * SECOND).await;
    let expected = rule(every("3s")).slots(edited, world.now().await, 100);
    assert_eq!(ran.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), expected);
    world.store.delete_schedule(delete).await.unwrap();
    assert!(world.work(MINUTE * 2).await.is_empty());
    let calls = world.faults.calls("decide_slots");
    pass(MINUTE).await;
    assert_eq!(world.faults.calls("decide_slots"), calls, "it is forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_schedule_fires_no_more() {
    for overlap in ["allow", "skip"] {
        let world = World::new().await;
        world.put(overlapping(overlap, every("10s"))).await;
        world.work(25 * SECOND).await;
        let (tenant, name) = (tenant(), name("s"));
        world.engine.delete_schedule(&tenant, &name, Expected::Any).await.unwrap();
        let again = world.engine.delete_schedule(&tenant, &name, Expected::Any).await;
        assert!(matches!(again, Err(ScheduleError::NotFound)));
        let calls = world.faults.calls("decide_slots");
        assert!(world.work(MINUTE * 3).await.is_empty());
        assert!(world.engine.slot_records(&tenant, &name).await.unwrap().is_none());
        assert_eq!(world.faults.calls("decide_slots"), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn changes_need_the_version_that_is_there() {
    let world = World::new().await;
    let (tenant, name) = (tenant(), name("s"));
    let put = |expected| {
        let new = new(every("1h"), echo());
        world.engine.put_schedule(&tenant, &name, new, expected)
    };
    let (view, created) = put(Expected::Absent).await.unwrap();
    assert!(created);
    let version = view.schedule.version;
    let other = Expected::Version(version + 1);
    let deleted = world.engine.delete_schedule(&tenant, &name, other).await;
    assert!(matches!(deleted, Err(ScheduleError::Conflict { version: known }) if known == version));
    assert!(matches!(put(Expected::Absent).await, Err(ScheduleError::Conflict { .. })));
    let page = ListSchedules {
        tenant: tenant.clone(),
        status: None,
        labels: BTreeMap::new(),
        after: None,
        limit: 10,
    };
    let (views, next) = world.engine.schedules(page).await.unwrap();
    assert_eq!((views.len(), next), (1, None));
}

#[tokio::test(start_paused = true)]
async fn a_workflow_starts_at_its_slot_with_all_its_tasks() {
    let world = World::new().await;
    let member = |key: &str, needs: &[&str]| Member {
        key: key.to_owned(),
        spec: draft("echo").check().unwrap(),
        depends_on: needs
            .iter()
            .map(|key| Needed { key: (*key).to_owned(), on: Condition::Success })
            .collect(),
    };
    let spec = WorkflowSpec {
        name: "report".to_owned(),
        labels: BTreeMap::new(),
        fail_fast: false,
        idempotency_key: None,
        members: Members::of_workflow(vec![member("b", &["a"]), member("a", &[])]).unwrap(),
    };
    let template = Template::workflow(spec).unwrap();
    // Workflows are not stored ahead, whatever their overlap rule is.
    let draft = overlapping("allow", every("1m"));
    world.put_named("s", new(draft, template)).await;
    pass(19 * SECOND).await;
    assert!(world.records().await.is_empty());
    pass(2 * SECOND).await;
    for _ in 0..2 {
        let lease = world.source.claim(10).await.unwrap();
        assert_eq!(lease.len(), 1);
        world.end(lease).await;
    }
    let record = world.records().await.remove(0);
    assert_eq!(record.status, Some(RunStatus::Workflow(WorkflowStatus::Success)));
    let SlotOutcome::Ran(SlotRun::Workflow(id)) = record.outcome else { panic!("nothing ran") };
    let workflow = world.engine.workflow(&tenant(), id).await.unwrap().unwrap().state.workflow;
    assert_eq!(workflow.labels[SCHEDULE_LABEL], "s");
    assert_eq!(workflow.labels[SLOT_LABEL], record.slot.to_string());
    let graph = world.engine.graph(&tenant(), id).await.unwrap().unwrap();
    assert!(graph.edges.iter().all(|edge| edge.parent < edge.child), "ids ascend along edges");
}

#[tokio::test(start_paused = true)]
async fn slots_wait_for_a_store_that_does_not_answer() {
    let world = World::new().await;
    let start = world.now().await;
    let view = world.put(every("10s")).await;
    settle().await;
    world.faults.set_schedules_fail(true);
    pass(25 * SECOND).await;
    assert!(world.tasks_of("s").await.is_empty());
    world.faults.set_schedules_fail(false);
    let ran = world.work(15 * SECOND).await;
    let records = world.records().await;
    let decided: Vec<_> = records.iter().map(|record| record.slot).collect();
    assert_eq!(decided, view.rule.slots(start, world.now().await, 100));
    assert!(!ran.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_decision_whose_answer_is_lost_counts_once() {
    let world = World::new().await;
    let start = world.now().await;
    let view = world.put(every("10s")).await;
    world.faults.lose_decisions(3);
    let ran: Vec<_> = world.work(MINUTE + SECOND).await.into_iter().map(|(slot, _)| slot).collect();
    assert_eq!(ran, view.rule.slots(start, world.now().await, 100));
    assert_eq!(slots(&world.tasks_of("s").await), ran);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_cannot_be_decided_does_not_stop_others() {
    let world = World::new().await;
    let bad = world.put_named("bad", new(every("10s"), echo())).await;
    world.faults.fail_decisions_of(Some(bad.schedule.id));
    for n in 0..9 {
        world.put_named(&format!("s{n}"), new(every("10s"), echo())).await;
    }
    let ran = world.work(25 * SECOND).await;
    assert_eq!(ran.len(), 2 * 9);
    assert!(ran.iter().all(|(_, late)| *late <= LATE), "{ran:?}");
    world.faults.fail_decisions_of(None);
    world.work(MINUTE * 2).await;
    assert!(!world.tasks_of("bad").await.is_empty(), "it is tried again");
}

#[tokio::test(start_paused = true)]
async fn a_damaged_schedule_is_left_out() {
    let world = World::new().await;
    let damaged =
        |called: &str, rule: &str, template: String| duly_core::ports::store::PutSchedule {
            id: duly_core::id::ScheduleId::mint(Timestamp::EPOCH, called.len() as u64),
            tenant: tenant(),
            name: name(called),
            definition: duly_core::schedule::Definition {
                rule: Arc::from(rule),
                template: template.into(),
            },
            labels: BTreeMap::new(),
            status: ScheduleStatus::Active,
            note: None,
            managed: false,
            expected: Expected::Any,
        };
    world.store.put_schedule(damaged("x", "{", echo().encode())).await.unwrap();
    let rule = r#"{"every": "10s"}"#;
    world.store.put_schedule(damaged("xx", rule, "{".to_owned())).await.unwrap();
    world.put(every("10s")).await;
    assert_eq!(world.work(MINUTE + SECOND).await.len(), 6);
    let read = world.engine.schedule(&tenant(), &name("x")).await;
    assert!(matches!(read, Err(ScheduleError::Damaged)));
    world.put_named("x", new(every("10s"), echo())).await;
    world.work(MINUTE).await;
    assert!(!world.tasks_of("x").await.is_empty(), "it can be replaced");
}

#[tokio::test(start_paused = true)]
async fn only_schedules_that_are_due_cost_anything() {
    let mut world = World::new().await;
    for n in 0..3_000 {
        let daily =
            ScheduleDraft { cron: Some("0 3 * * *".to_owned()), ..ScheduleDraft::default() };
        world.put_named(&format!("idle-{n}"), new(daily, echo())).await;
    }
    world.engine.close().await;
    world.start_again().await;
    settle().await;
    let reads = world.faults.calls("schedules_changed");
    world.put(every("1m")).await;
    let ran = world.work(MINUTE * 10).await;
    assert_eq!(ran.len(), 10);
    assert!(ran.iter().all(|(_, late)| *late <= LATE), "{ran:?}");
    assert_eq!(world.faults.calls("decide_slots"), 10);
    let polls = world.faults.calls("schedules_changed") - reads;
    assert!(polls <= 11, "{polls}");
    assert_eq!(world.faults.calls("schedule_versions"), 0);
}

crate::stores::with_lost_hints!(
    all: a_trigger_follows_the_overlap_rule,
    a_trigger_runs_a_paused_schedule_and_moves_no_slot,
    a_workflow_starts_at_its_slot_with_all_its_tasks,
    after_a_stop_the_misfire_rule_decides,
    changes_need_the_version_that_is_there,
    labels_and_notes_change_without_withdrawing_slots,
    other_runs_are_decided_when_their_slot_has_come,
    the_latest_missed_slot_runs_and_those_too_old_do_not
);
