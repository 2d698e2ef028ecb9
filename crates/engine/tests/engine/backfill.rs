//! Slots of the past that are run afterwards.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::collections::BTreeSet;
use std::time::Duration;

use duly_core::limits::BACKFILL_STEP;
use duly_core::ports::store::Expected;
use duly_core::schedule::{ScheduleStatus, SkipReason};
use duly_core::state::Status;
use duly_core::task::Task;
use duly_core::time::Timestamp;
use duly_engine::command::schedules::{Backfill, ScheduleError};

use crate::schedules::{every, name, overlapping, skipped, slots, tenant};
use crate::world::{World, pass};

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

impl World {
    async fn backfill(&self, from: Timestamp, to: Timestamp, dry_run: bool) -> Backfill {
        let (tenant, name) = (tenant(), name("s"));
        self.engine.backfill_schedule(&tenant, &name, from, to, dry_run).await.unwrap()
    }

    async fn backfill_all(&self, from: Timestamp, to: Timestamp) -> Task {
        let started = self.backfill(from, to, false).await;
        self.wait(started.task.unwrap(), HOUR).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_backfill_runs_what_has_not_run() {
    let world = World::new().await;
    let start = world.now().await;
    let view = world.put(overlapping("allow", every("1m"))).await;
    assert_eq!(world.work(5 * MINUTE).await.len(), 5);
    let (from, to) = (start.minus(10 * MINUTE), world.now().await);
    let dry = world.backfill(from, to, true).await;
    assert_eq!((dry.slots.len(), dry.more, dry.task), (15, false, None));
    assert_eq!(dry.slots.iter().filter(|slot| slot.ran_before).count(), 5);
    assert_eq!(world.tasks_of("s").await.len(), 6, "a dry run runs nothing");
    let task = world.backfill_all(from, to).await;
    assert_eq!(task.status, Status::Success);
    assert_eq!(task.result.as_deref(), Some(r#"{"ran":10,"ranBefore":5,"skipped":0}"#));
    let progress = task.progress.unwrap().progress;
    assert_eq!((progress.done, progress.total), (15, Some(15)));
    assert!(world.work(10 * Duration::from_secs(1)).await.len() >= 10, "they are due");
    let tasks = slots(&world.tasks_of("s").await);
    let once: BTreeSet<_> = tasks.iter().copied().collect();
    assert_eq!(tasks.len(), once.len(), "no slot has two tasks");
    assert!(view.rule.slots(from, to, 100).iter().all(|slot| once.contains(slot)));
    let again = world.backfill_all(from, to).await;
    assert_eq!(again.result.as_deref(), Some(r#"{"ran":0,"ranBefore":15,"skipped":0}"#));
}

#[tokio::test(start_paused = true)]
async fn a_backfill_follows_the_overlap_rule_and_moves_no_slot() {
    let world = World::new().await;
    let start = world.now().await;
    world.put(every("1m")).await;
    world.switch(ScheduleStatus::Paused).await;
    let task = world.backfill_all(start.minus(10 * MINUTE), start).await;
    assert_eq!(task.result.as_deref(), Some(r#"{"ran":1,"ranBefore":0,"skipped":9}"#));
    let records = world.records().await;
    let reasons: Vec<_> = records.iter().map(skipped).collect();
    assert_eq!(reasons[0], None);
    assert!(reasons[1..].iter().all(|reason| *reason == Some(SkipReason::Overlap)));
    assert_eq!(world.work(5 * MINUTE).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_long_backfill_survives_lost_answers_and_runs_each_slot_once() {
    let world = World::new().await;
    let start = world.now().await;
    let view = world.put(overlapping("allow", every("1m"))).await;
    world.switch(ScheduleStatus::Paused).await;
    world.faults.lose_decisions(2);
    let task = world.backfill_all(start.minus(10 * HOUR), start).await;
    assert_eq!(task.status, Status::Success);
    let progress = task.progress.unwrap().progress;
    assert_eq!((progress.done, progress.total), (600, Some(600)));
    let tasks = slots(&world.tasks_of("s").await);
    assert_eq!(tasks, view.rule.slots(start.minus(10 * HOUR), start, 1_000));
}

#[tokio::test(start_paused = true)]
async fn a_backfill_that_is_aborted_stops() {
    let world = World::new().await;
    let start = world.now().await;
    world.put(overlapping("allow", every("1m"))).await;
    world.switch(ScheduleStatus::Paused).await;
    world.faults.set_schedules_fail(true);
    let started = world.backfill(start.minus(10 * HOUR), start, false).await.task.unwrap();
    pass(MINUTE).await;
    world.engine.cancel(&tenant(), started, "enough".to_owned()).await.unwrap();
    world.faults.set_schedules_fail(false);
    pass(MINUTE).await;
    assert!(world.tasks_of("s").await.len() <= BACKFILL_STEP, "not more than a step");
    assert_eq!(world.get(started).await.status, Status::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_backfill_without_slots_starts_nothing() {
    let world = World::new().await;
    let start = world.now().await;
    world.put(every("1h")).await;
    let ahead = world.backfill(start.plus(MINUTE), start.plus(5 * HOUR), false).await;
    assert_eq!(ahead, Backfill::default(), "what lies ahead is no backfill");
    assert_eq!(world.backfill(start, start.minus(HOUR), false).await, Backfill::default());
    let (tenant, other) = (tenant(), name("other"));
    let unknown = world.engine.backfill_schedule(&tenant, &other, start, start, true).await;
    assert!(matches!(unknown, Err(ScheduleError::NotFound)));
    let long = world.backfill(start.minus(2_000 * HOUR), start, true).await;
    assert_eq!((long.slots.len(), long.more), (1_000, true));
    let started = world.backfill(start.minus(2 * HOUR), start, false).await.task.unwrap();
    world.engine.delete_schedule(&tenant, &name("s"), Expected::Any).await.unwrap();
    let ended = world.wait(started, HOUR).await;
    assert!(ended.status.is_terminal());
}

crate::stores::with_lost_hints!(
    all: a_backfill_follows_the_overlap_rule_and_moves_no_slot,
    a_backfill_without_slots_starts_nothing
);
