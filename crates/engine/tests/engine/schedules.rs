//! Schedules: when they fire, and what a stop, a change or another leader does to them. What the tests
//! share is here.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod changes;
mod configured;
mod failures;
mod firing;
mod missed;

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
