//! Runs one backfill, step by step. A step first reports its checkpoint, which is refused if the lease is
//! gone. A step that a crash repeats changes nothing: what a slot starts follows from the slot.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::SessionId;
use duly_core::lease::Lease;
use duly_core::limits::{BACKFILL_STEP, STORE_BATCH, STORE_BATCH_BYTES};
use duly_core::ports::store::{Decide, Decided, Report, ReportItem, Reported, SlotOutcome};
use duly_core::progress::Progress;
use duly_core::schedule::{BackfillNote, BackfillOrder, Overlap, Template};
use duly_core::time::Timestamp;
use tokio::time::Instant;

use super::Stopped;
use crate::command::schedules::{ScheduleError, ScheduleView};
use crate::engine::Engine;
use crate::slot_run::SlotRunner;

/// Runs a backfill from its last checkpoint. Returns its result as JSON.
pub(super) async fn run(
    engine: &Engine,
    session: SessionId,
    lease: &Lease,
) -> Result<Arc<str>, Stopped> {
    let invalid = |bad: &dyn std::fmt::Display| Stopped::Invalid(bad.to_string());
    let order: BackfillOrder = serde_json::from_str(&lease.payload).map_err(|bad| invalid(&bad))?;
    let task = engine.get(&lease.lane.tenant, lease.task).await?.ok_or(Stopped::Lost)?;
    let last = task.progress.and_then(|reported| reported.progress.checkpoint);
    let note = last.as_deref().map(serde_json::from_str).transpose();
    let note = note.map_err(|bad| invalid(&bad))?.unwrap_or_default();
    let mut run = BackfillRun { engine, session, lease, order, note };
    loop {
        run.report().await?;
        let start = Instant::now();
        let view = run.schedule().await?;
        let slots = run.next(&view);
        if slots.is_empty() {
            break;
        }
        run.step(&view, &slots).await?;
        // Other callers have the store half of the time.
        tokio::time::sleep(start.elapsed()).await;
    }
    let BackfillNote { ran, ran_before, skipped, .. } = run.note;
    let result = serde_json::json!({"ran": ran, "ranBefore": ran_before, "skipped": skipped});
    Ok(Arc::from(result.to_string()))
}

/// A backfill that runs.
struct BackfillRun<'a> {
    engine: &'a Engine,
    session: SessionId,
    lease: &'a Lease,
    order: BackfillOrder,
    note: BackfillNote,
}

impl BackfillRun<'_> {
    /// Stores how far it has come, provided that it still has its lease.
    async fn report(&self) -> Result<(), Stopped> {
        let checkpoint = serde_json::to_string(&self.note).expect("a note can always be written");
        let progress = Progress {
            checkpoint: Some(Arc::from(checkpoint)),
            ..Progress::new(self.note.done(), Some(self.order.slots))
        };
        let (task, epoch) = (self.lease.task, self.lease.epoch);
        let item = ReportItem { task, epoch, progress: Some(progress), log: None };
        let report = Report { session: self.session, items: vec![item] };
        match self.engine.sessions().report(report).await?.as_slice() {
            [Reported::Done] => Ok(()),
            _ => Err(Stopped::Lost),
        }
    }

    /// The schedule as it is now.
    async fn schedule(&self) -> Result<ScheduleView, Stopped> {
        let view = self.engine.schedule(&self.lease.lane.tenant, &self.order.schedule).await;
        match view {
            Ok(Some(view)) if view.schedule.id == self.order.id => Ok(view),
            Ok(_) => Err(Stopped::Invalid("the schedule was deleted".to_owned())),
            Err(ScheduleError::Store(error)) => Err(Stopped::Store(error)),
            Err(other) => Err(Stopped::Invalid(other.to_string())),
        }
    }

    /// The slots of the next step.
    fn next(&self, view: &ScheduleView) -> Vec<Timestamp> {
        let before = self.order.from.minus(Duration::from_millis(1));
        let after = self.note.after.unwrap_or(before);
        let tasks = match &view.template {
            Template::Task(_) => 1,
            Template::Workflow(spec) => 1 + spec.members.tasks().len(),
        };
        let bytes = view.schedule.definition.template.len();
        let most = (STORE_BATCH / tasks).min(STORE_BATCH_BYTES / bytes.max(1));
        view.rule.slots(after, self.order.to, most.clamp(1, BACKFILL_STEP))
    }

    /// Decides slots. If the schedule was changed meanwhile, the next step decides them.
    async fn step(&mut self, view: &ScheduleView, slots: &[Timestamp]) -> Result<(), Stopped> {
        let defaults = self.engine.defaults_of(&view.schedule.tenant).await?;
        let before = self.engine.slots_that_ran(view, &defaults, slots).await?;
        let runner = SlotRunner::of(view, &defaults);
        let open = slots.iter().copied().filter(|slot| !before.contains(slot));
        let orders: Vec<_> =
            open.map(|slot| (slot, runner.run(slot, view.jitter_of(slot)))).collect();
        let open = orders.len();
        let decision = Decide {
            schedule: view.schedule.id,
            generation: view.schedule.generation,
            moves: None,
            overlap: view.rule.overlap,
            slots: orders,
        };
        let outcomes = match self.engine.store().decide_slots(vec![decision]).await?.pop() {
            Some(Decided::Done { slots, cancelled }) => {
                if view.rule.overlap == Overlap::CancelOther {
                    self.engine.sessions().tell_cancelled(cancelled);
                    self.engine.cascade_now();
                }
                slots
            }
            _ => return Ok(()),
        };
        let ran = outcomes.iter().filter(|it| matches!(it, SlotOutcome::Ran(_))).count();
        self.note.ran += ran as u64;
        self.note.skipped += (open - ran) as u64;
        self.note.ran_before += (slots.len() - open) as u64;
        self.note.after = slots.last().copied();
        Ok(())
    }
}
