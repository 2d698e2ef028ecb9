//! Schedules: what is kept of them, and their changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use duly_core::id::ScheduleId;
use duly_core::limits::{SLOT_LOG, STORE_BATCH};
use duly_core::name::{ScheduleName, TenantName};
use duly_core::ports::store::{
    Controlled, Decide, Decided, DeleteSchedule, DeleteTasks, Error, Expected, ListSchedules,
    PutSchedule, RunStatus, ScheduleChange, SlotOrder, SlotOutcome, SlotRecord, SwitchSchedule,
    Usage,
};
use duly_core::schedule::{Definition, Overlap, Schedule, ScheduleStatus, SkipReason, SlotRun};
use duly_core::state::Status;
use duly_core::task::NewTask;
use duly_core::time::Timestamp;
use duly_core::workflow::{Condition, Dependency, Links};

use super::Harness;

const MINUTE: Duration = Duration::from_secs(60);

pub(super) fn own() -> TenantName {
    TenantName::default_tenant()
}

pub(super) fn name(text: &str) -> ScheduleName {
    ScheduleName::new(text).unwrap()
}

pub(super) fn put(harness: &Harness, schedule: &str, number: u64) -> PutSchedule {
    PutSchedule {
        id: ScheduleId::mint(harness.now(), number),
        tenant: own(),
        name: name(schedule),
        definition: Definition { rule: Arc::from("{\"every\":\"1m\"}"), template: Arc::from("{}") },
        labels: BTreeMap::from([("team".to_owned(), "blue".to_owned())]),
        status: ScheduleStatus::Active,
        note: Some("a note".to_owned()),
        managed: false,
        expected: Expected::Any,
    }
}

pub(super) async fn change(harness: &Harness, put: PutSchedule) -> Schedule {
    match harness.store().put_schedule(put).await.unwrap() {
        ScheduleChange::Done { schedule, .. } => *schedule,
        other => panic!("{other:?}"),
    }
}

async fn created(harness: &Harness) -> Schedule {
    change(harness, put(harness, "nightly", 1)).await
}

async fn switch(harness: &Harness, status: ScheduleStatus) -> ScheduleChange {
    let order = SwitchSchedule {
        tenant: own(),
        name: name("nightly"),
        status,
        note: None,
        expected: Expected::Any,
    };
    harness.store().switch_schedule(order).await.unwrap()
}

pub(super) async fn find(harness: &Harness) -> Schedule {
    let found = harness.store().schedule(&own(), &name("nightly")).await.unwrap();
    found.expect("it is stored")
}

pub(super) async fn records(harness: &Harness) -> Vec<SlotRecord> {
    let records = harness.store().slot_records(&own(), &name("nightly")).await.unwrap();
    records.expect("it is stored")
}

/// A task of a slot, due at it.
pub(super) fn task_of(harness: &Harness, slot: Timestamp) -> NewTask {
    NewTask { run_at: slot, ..harness.task("email") }
}

/// Slots that run tasks, from where the schedule is to the last of them.
pub(super) fn decide(schedule: &Schedule, overlap: Overlap, tasks: &[NewTask]) -> Decide {
    let order = |task: &NewTask| (task.run_at, SlotOrder::Task(Box::new(task.clone())));
    let to = tasks.last().map_or(schedule.position, |task| task.run_at);
    Decide {
        schedule: schedule.id,
        generation: schedule.generation,
        moves: Some((schedule.position, to)),
        overlap,
        slots: tasks.iter().map(order).collect(),
    }
}

pub(super) async fn decided(harness: &Harness, decide: &Decide) -> Decided {
    let answers = harness.store().decide_slots(vec![decide.clone()]).await.unwrap();
    let [answer] = &answers[..] else { panic!("{answers:?}") };
    answer.clone()
}

pub(super) async fn outcomes(harness: &Harness, decide: &Decide) -> Vec<SlotOutcome> {
    match decided(harness, decide).await {
        Decided::Done { slots, .. } => slots,
        Decided::Stale => panic!("it is stale"),
    }
}

fn ran(task: &NewTask) -> SlotOutcome {
    SlotOutcome::Ran(SlotRun::Task(task.id))
}

pub async fn a_schedule_reads_back_as_it_was(mut harness: Harness) {
    let order = put(&harness, "nightly", 1);
    let stored = change(&harness, order.clone()).await;
    assert_eq!((stored.id, &stored.definition), (order.id, &order.definition));
    assert_eq!((stored.generation, stored.position), (1, harness.now()));
    assert_eq!((stored.created_at, stored.updated_at), (harness.now(), harness.now()));
    assert_eq!((&stored.labels, &stored.note), (&order.labels, &order.note));
    harness.crash().await;
    assert_eq!(find(&harness).await, stored);
    assert_eq!(harness.store().schedules_by_id(vec![stored.id]).await.unwrap(), [stored]);
    assert!(records(&harness).await.is_empty());
}

pub async fn names_belong_to_a_tenant(harness: Harness) {
    let own_one = created(&harness).await;
    let other = TenantName::new("other").unwrap();
    assert_eq!(harness.store().schedule(&other, &name("nightly")).await.unwrap(), None);
    assert_eq!(harness.store().slot_records(&other, &name("nightly")).await.unwrap(), None);
    let foreign = PutSchedule { tenant: other.clone(), ..put(&harness, "nightly", 2) };
    assert_ne!(change(&harness, foreign).await.id, own_one.id);
    let page = ListSchedules {
        tenant: other,
        status: None,
        labels: BTreeMap::new(),
        after: None,
        limit: 10,
    };
    assert_eq!(harness.store().schedules(page).await.unwrap().schedules.len(), 1);
}

pub async fn a_change_may_name_the_version_that_it_is_based_on(harness: Harness) {
    let first = created(&harness).await;
    let with = |expected, note: &str| PutSchedule {
        expected,
        note: Some(note.to_owned()),
        ..put(&harness, "nightly", 2)
    };
    let conflict = ScheduleChange::Conflict { version: first.version };
    for expected in [Expected::Absent, Expected::Version(first.version + 7)] {
        let answer = harness.store().put_schedule(with(expected, "new")).await.unwrap();
        assert_eq!(answer, conflict);
    }
    let second = change(&harness, with(Expected::Version(first.version), "new")).await;
    assert_eq!((second.id, second.note.as_deref()), (first.id, Some("new")));
    assert!(second.version > first.version);
    assert_eq!(second.generation, first.generation, "no slot is concerned");
    let unknown =
        PutSchedule { expected: Expected::Version(first.version), ..put(&harness, "another", 3) };
    let answer = harness.store().put_schedule(unknown).await.unwrap();
    assert_eq!(answer, ScheduleChange::Unknown);
}

pub async fn the_same_again_changes_nothing(harness: Harness) {
    let first = created(&harness).await;
    harness.advance(MINUTE);
    let again = put(&harness, "nightly", 2);
    assert_eq!(change(&harness, again).await, first);
    assert!(matches!(
        switch(&harness, ScheduleStatus::Active).await,
        ScheduleChange::Done { schedule, .. } if *schedule == first
    ));
}

pub async fn one_of_a_configuration_file_refuses_requests(harness: Harness) {
    let managed = PutSchedule { managed: true, ..put(&harness, "nightly", 1) };
    change(&harness, managed.clone()).await;
    let request = PutSchedule { note: None, ..put(&harness, "nightly", 2) };
    let store = harness.store();
    assert_eq!(store.put_schedule(request).await.unwrap(), ScheduleChange::Managed);
    assert_eq!(switch(&harness, ScheduleStatus::Paused).await, ScheduleChange::Managed);
    let delete = |managed| DeleteSchedule {
        tenant: own(),
        name: name("nightly"),
        managed,
        expected: Expected::Any,
    };
    assert_eq!(store.delete_schedule(delete(false)).await.unwrap(), ScheduleChange::Managed);
    let changed = PutSchedule { note: None, ..managed };
    assert_eq!(change(&harness, changed).await.note, None);
    store.delete_schedule(delete(true)).await.unwrap();
    assert_eq!(store.schedule(&own(), &name("nightly")).await.unwrap(), None);
}

pub async fn lists_go_by_name(harness: Harness) {
    for (number, schedule) in (1..).zip(["c", "a", "d", "b"]) {
        let status = match schedule {
            "d" => ScheduleStatus::Paused,
            _ => ScheduleStatus::Active,
        };
        let labels = BTreeMap::from([("name".to_owned(), schedule.to_owned())]);
        change(&harness, PutSchedule { status, labels, ..put(&harness, schedule, number) }).await;
    }
    let page = ListSchedules {
        tenant: own(),
        status: None,
        labels: BTreeMap::new(),
        after: None,
        limit: 3,
    };
    let names = async |page: ListSchedules| {
        let list = harness.store().schedules(page).await.unwrap();
        let names: Vec<_> = list.schedules.iter().map(|it| it.name.to_string()).collect();
        (names.concat(), list.next_after)
    };
    let (first, next) = names(page.clone()).await;
    assert_eq!((&*first, &next), ("abc", &Some(name("c"))));
    assert_eq!(names(ListSchedules { after: next, ..page.clone() }).await, ("d".to_owned(), None));
    let paused = ListSchedules { status: Some(ScheduleStatus::Paused), ..page.clone() };
    assert_eq!(names(paused).await.0, "d");
    let labels = BTreeMap::from([("name".to_owned(), "b".to_owned())]);
    assert_eq!(names(ListSchedules { labels, ..page }).await.0, "b");
}

pub async fn changes_are_found_by_their_version(harness: Harness) {
    let first = created(&harness).await;
    let second = change(&harness, put(&harness, "weekly", 2)).await;
    let store = harness.store();
    assert_eq!(store.schedules_changed(0, 10).await.unwrap(), [first.clone(), second.clone()]);
    assert_eq!(store.schedules_changed(0, 1).await.unwrap(), std::slice::from_ref(&first));
    switch(&harness, ScheduleStatus::Paused).await;
    let paused = find(&harness).await;
    let changed = store.schedules_changed(second.version, 10).await.unwrap();
    assert_eq!(changed, std::slice::from_ref(&paused));
    assert!(store.schedules_changed(paused.version, 10).await.unwrap().is_empty());
    let mut versions = [(paused.id, paused.version), (second.id, second.version)];
    versions.sort_unstable();
    assert_eq!(store.schedule_versions(None, 10).await.unwrap(), versions);
    let rest = store.schedule_versions(Some(versions[0].0), 10).await.unwrap();
    assert_eq!(rest, versions[1..]);
    let delete = DeleteSchedule {
        tenant: own(),
        name: name("nightly"),
        managed: false,
        expected: Expected::Any,
    };
    store.delete_schedule(delete).await.unwrap();
    let third = change(&harness, put(&harness, "daily", 3)).await;
    assert!(third.version > paused.version, "a version is given once");
}

pub async fn a_slot_is_decided_once(mut harness: Harness) {
    let schedule = created(&harness).await;
    harness.advance(MINUTE);
    let task = task_of(&harness, harness.now());
    let order = decide(&schedule, Overlap::Skip, std::slice::from_ref(&task));
    for _ in 0..2 {
        assert_eq!(outcomes(&harness, &order).await, [ran(&task)]);
    }
    harness.crash().await;
    assert_eq!(outcomes(&harness, &order).await, [ran(&task)]);
    assert_eq!(harness.get(task.id).await.status, Status::Pending);
    let status = Some(RunStatus::Task(Status::Pending));
    let record = SlotRecord { slot: task.run_at, outcome: ran(&task), status };
    assert_eq!(records(&harness).await, [record]);
    assert_eq!(find(&harness).await.position, task.run_at);
    // A leader that knows less decides nothing.
    let other = task_of(&harness, harness.now());
    let from = schedule.position.plus(MINUTE / 2);
    let stale = Decide { moves: Some((from, task.run_at)), ..order };
    let stale = Decide { slots: vec![(from, SlotOrder::Task(Box::new(other.clone())))], ..stale };
    assert_eq!(decided(&harness, &stale).await, Decided::Stale);
    assert_eq!(harness.store().get(&own(), other.id).await.unwrap(), None);
}

pub async fn a_skipped_slot_is_recorded(harness: Harness) {
    let schedule = created(&harness).await;
    let slot = schedule.position.plus(MINUTE);
    let order = Decide {
        moves: Some((schedule.position, slot)),
        slots: vec![(slot, SlotOrder::Skip(SkipReason::Missed))],
        ..decide(&schedule, Overlap::Skip, &[])
    };
    let skipped = SlotOutcome::Skipped(SkipReason::Missed);
    assert_eq!(outcomes(&harness, &order).await, [skipped]);
    assert_eq!(records(&harness).await, [SlotRecord { slot, outcome: skipped, status: None }]);
}

pub async fn the_last_records_are_kept(harness: Harness) {
    let schedule = created(&harness).await;
    let slot = |number: u32| schedule.position.plus(MINUTE * number);
    let count = u32::try_from(SLOT_LOG).unwrap() + 5;
    let skip = |number| (slot(number), SlotOrder::Skip(SkipReason::TooOld));
    for (first, last) in [(1, count / 2), (count / 2 + 1, count)] {
        let schedule = find(&harness).await;
        let order = Decide {
            moves: Some((schedule.position, slot(last))),
            slots: (first..=last).map(skip).collect(),
            ..decide(&schedule, Overlap::Skip, &[])
        };
        outcomes(&harness, &order).await;
    }
    let kept: Vec<_> = records(&harness).await.iter().map(|record| record.slot).collect();
    assert_eq!(kept, (6..=count).rev().map(slot).collect::<Vec<_>>());
}

pub async fn several_schedules_are_decided_in_one_call(harness: Harness) {
    let first = created(&harness).await;
    let second = change(&harness, put(&harness, "weekly", 2)).await;
    harness.advance(MINUTE);
    let tasks = [task_of(&harness, harness.now()), task_of(&harness, harness.now())];
    let orders = vec![
        decide(&first, Overlap::Skip, &tasks[..1]),
        Decide { generation: 9, ..decide(&second, Overlap::Skip, &tasks[1..]) },
        Decide {
            schedule: ScheduleId::mint(harness.now(), 9),
            ..decide(&second, Overlap::Skip, &[])
        },
    ];
    let answers = harness.store().decide_slots(orders).await.unwrap();
    let done = Decided::Done { slots: vec![ran(&tasks[0])], cancelled: vec![] };
    assert_eq!(answers, [done, Decided::Stale, Decided::Stale]);
    let many: Vec<_> = (0..=STORE_BATCH).map(|_| task_of(&harness, harness.now())).collect();
    let refused = harness.store().decide_slots(vec![decide(&second, Overlap::Allow, &many)]).await;
    assert!(matches!(refused, Err(Error::TooLarge { .. })));
}

pub async fn a_pause_takes_back_what_was_not_granted(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let schedule = created(&harness).await;
    harness.advance(MINUTE);
    let tasks: Vec<_> =
        (0..3).map(|number| task_of(&harness, harness.now().plus(MINUTE * number))).collect();
    outcomes(&harness, &decide(&schedule, Overlap::Allow, &tasks)).await;
    assert_eq!(harness.claim_one(session).await.task, tasks[0].id);
    switch(&harness, ScheduleStatus::Paused).await;
    let paused = find(&harness).await;
    assert_eq!(paused.generation, schedule.generation + 1);
    assert_eq!(paused.position, tasks[0].run_at);
    let left: Vec<_> = records(&harness).await.iter().map(|record| record.slot).collect();
    assert_eq!(left, [tasks[0].run_at]);
    for gone in &tasks[1..] {
        assert_eq!(harness.store().get(&own(), gone.id).await.unwrap(), None);
    }
    let again = decide(&paused, Overlap::Allow, &tasks[1..]);
    assert_eq!(decided(&harness, &again).await, Decided::Stale, "it is paused");
    harness.advance(MINUTE * 10);
    assert!(harness.claim(session, 10).await.is_empty());
    switch(&harness, ScheduleStatus::Active).await;
    assert_eq!(find(&harness).await.position, harness.now(), "nothing was missed");
}

pub async fn an_edit_goes_on_after_the_last_slot_that_was_granted(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let schedule = created(&harness).await;
    harness.advance(MINUTE);
    let early = task_of(&harness, harness.now());
    let ahead = task_of(&harness, harness.now().plus(MINUTE));
    let both = [early.clone(), ahead.clone()];
    outcomes(&harness, &decide(&schedule, Overlap::Allow, &both)).await;
    harness.claim_one(session).await;
    harness.advance(MINUTE / 2);
    let definition = Definition { rule: Arc::from("{\"every\":\"2m\"}"), ..schedule.definition };
    let edited = change(&harness, PutSchedule { definition, ..put(&harness, "nightly", 2) }).await;
    assert_eq!((edited.id, edited.generation), (schedule.id, 2));
    assert!((early.run_at..=harness.now()).contains(&edited.position), "{}", edited.position);
    assert_eq!(harness.store().get(&own(), ahead.id).await.unwrap(), None);
    let old = Decide { generation: 1, ..decide(&edited, Overlap::Allow, &[ahead]) };
    assert_eq!(decided(&harness, &old).await, Decided::Stale);
}

pub async fn only_a_new_rule_forgets_what_was_missed(harness: Harness) {
    let schedule = created(&harness).await;
    harness.advance(MINUTE * 10);
    let template = Definition { template: Arc::from("{\"n\":1}"), ..schedule.definition.clone() };
    let order = PutSchedule { definition: template, ..put(&harness, "nightly", 2) };
    assert_eq!(change(&harness, order.clone()).await.position, schedule.position);
    let rule = Definition { rule: Arc::from("{\"every\":\"2m\"}"), ..order.definition };
    let order = PutSchedule { definition: rule, ..put(&harness, "nightly", 3) };
    assert_eq!(change(&harness, order).await.position, harness.now());
}

pub async fn a_slot_runs_again_though_a_client_has_kept_its_task(harness: Harness) {
    let schedule = created(&harness).await;
    let slot = harness.now().plus(MINUTE);
    let kept = task_of(&harness, slot);
    outcomes(&harness, &decide(&schedule, Overlap::Allow, &[kept])).await;
    let SlotOutcome::Ran(SlotRun::Task(parent)) = records(&harness).await[0].outcome else {
        panic!("it was skipped");
    };
    let dependencies = vec![Dependency { parent, on: Condition::Done }];
    let links = Links { dependencies, ..Links::default() };
    let child = NewTask { links: Some(Arc::new(links)), ..harness.task("email") };
    harness.submit(&[child]).await;
    let definition = Definition { rule: Arc::from("{\"every\":\"2m\"}"), ..schedule.definition };
    let edited = change(&harness, PutSchedule { definition, ..put(&harness, "nightly", 2) }).await;
    assert_eq!(harness.get(parent).await.status, Status::Cancelled);
    let again = task_of(&harness, slot);
    outcomes(&harness, &decide(&edited, Overlap::Allow, &[again])).await;
    let status = records(&harness).await[0].status;
    assert_eq!(status, Some(RunStatus::Task(Status::Pending)), "another task runs it");
}

pub async fn a_deleted_one_takes_its_waiting_tasks_along(harness: Harness) {
    let schedule = created(&harness).await;
    let task = task_of(&harness, harness.now().plus(MINUTE));
    outcomes(&harness, &decide(&schedule, Overlap::Allow, std::slice::from_ref(&task))).await;
    let delete = DeleteSchedule {
        tenant: own(),
        name: name("nightly"),
        managed: false,
        expected: Expected::Version(schedule.version),
    };
    // The answer to the first call may be lost.
    let answer = harness.store().delete_schedule(delete).await.unwrap();
    assert!(matches!(answer, ScheduleChange::Done { .. } | ScheduleChange::Unknown), "{answer:?}");
    assert_eq!(harness.store().schedule(&own(), &name("nightly")).await.unwrap(), None);
    assert_eq!(harness.store().get(&own(), task.id).await.unwrap(), None);
    let decide = decide(&schedule, Overlap::Allow, &[task]);
    assert_eq!(decided(&harness, &decide).await, Decided::Stale);
    assert_ne!(change(&harness, put(&harness, "nightly", 2)).await.id, schedule.id);
}

pub async fn a_slot_asked_for_by_name_moves_nothing(harness: Harness) {
    let schedule = created(&harness).await;
    switch(&harness, ScheduleStatus::Paused).await;
    let paused = find(&harness).await;
    let task = task_of(&harness, harness.now());
    let order =
        Decide { moves: None, ..decide(&paused, Overlap::Skip, std::slice::from_ref(&task)) };
    assert_eq!(outcomes(&harness, &order).await, [ran(&task)]);
    let other = task_of(&harness, harness.now());
    let again = Decide { slots: vec![(task.run_at, SlotOrder::Task(Box::new(other)))], ..order };
    assert_eq!(outcomes(&harness, &again).await, [ran(&task)], "it has run");
    assert_eq!(find(&harness).await.position, paused.position);
    assert_eq!(schedule.id, paused.id);
}

pub async fn a_record_outlives_its_task(harness: Harness) {
    let session = harness.session(&["email"]).await;
    let schedule = created(&harness).await;
    harness.advance(MINUTE);
    let task = task_of(&harness, harness.now());
    outcomes(&harness, &decide(&schedule, Overlap::Skip, std::slice::from_ref(&task))).await;
    let lease = harness.claim_one(session).await;
    harness.finish_one(session, &lease, super::harness::success()).await;
    let status = Some(RunStatus::Task(Status::Success));
    assert_eq!(records(&harness).await[0].status, status);
    let order = DeleteTasks { tenant: own(), tasks: vec![task.id], before: None };
    let deleted = harness.store().delete(order).await.unwrap();
    assert!(matches!(deleted[..], [Controlled::Done | Controlled::Unknown]));
    let record = SlotRecord { slot: task.run_at, outcome: ran(&task), status: None };
    assert_eq!(records(&harness).await, [record]);
}

pub async fn those_of_a_tenant_are_counted(harness: Harness) {
    for number in 1..=3 {
        change(&harness, put(&harness, &format!("schedule-{number}"), number)).await;
    }
    let of = async |tenant: &TenantName, up_to| {
        let counted = harness.store().usage(tenant, Usage::Schedules, up_to).await.unwrap();
        (counted.count, counted.more)
    };
    assert_eq!(of(&own(), 3).await, (3, false));
    assert_eq!(of(&own(), 2).await, (2, true));
    assert_eq!(of(&TenantName::new("other").unwrap(), 2).await, (0, false));
}
