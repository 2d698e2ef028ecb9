//! Run slots of the past. A backfill is a system task, as bulk actions are: it survives a crash, shows
//! its progress, and ends when it is cancelled.

use std::collections::HashSet;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::limits::{BACKFILL, BACKFILL_PREVIEW, BACKFILL_SLOTS, TIMEOUT};
use duly_core::name::{QueueName, ScheduleName, TenantName, TypeName};
use duly_core::ports::store::{self, SlotOutcome};
use duly_core::schedule::{BackfillOrder, Rule, SlotRun};
use duly_core::settings::Settings;
use duly_core::submit::Draft;
use duly_core::time::Timestamp;

use super::super::submit;
use super::{ScheduleError, ScheduleView};
use crate::engine::Engine;
use crate::slot_run::SlotRunner;

/// How often a backfill that failed is tried again.
const RETRIES: u32 = 100;

/// A backfill, or what it would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backfill {
    /// The slots of a dry run, oldest first; none of a backfill that was started.
    pub slots: Vec<BackfillSlot>,
    /// Whether there are more slots than it names or than one backfill may have.
    pub more: bool,
    /// The task that runs them; nothing of a dry run, or if there is no slot.
    pub task: Option<TaskId>,
}

/// A slot of a backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackfillSlot {
    /// The slot.
    pub slot: Timestamp,
    /// Whether it has run before, so that it does not run again.
    pub ran_before: bool,
}

impl Engine {
    /// Runs the slots from an instant to another, both included, as far as they lie in the past, not too
    /// far back, and have not run before. The overlap rule of the schedule applies. A dry run only tells
    /// which slots these are.
    pub async fn backfill_schedule(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
        from: Timestamp,
        to: Timestamp,
        dry_run: bool,
    ) -> Result<Backfill, ScheduleError> {
        let view = self.schedule(tenant, name).await?.ok_or(ScheduleError::NotFound)?;
        let now = self.store().now().await?;
        let (from, to) = (from.max(now.minus(BACKFILL)), to.min(now));
        let limit = if dry_run { BACKFILL_PREVIEW } else { BACKFILL_SLOTS };
        let (slots, more) = find(view.rule.clone(), from, to, limit).await;
        let Some(last) = slots.last().copied() else { return Ok(Backfill::default()) };
        if dry_run {
            let defaults = self.defaults_of(tenant).await?;
            let before = self.slots_that_ran(&view, &defaults, &slots).await?;
            let slot = |slot| BackfillSlot { slot, ran_before: before.contains(&slot) };
            return Ok(Backfill { slots: slots.into_iter().map(slot).collect(), more, task: None });
        }
        let (id, schedule, slots) = (view.schedule.id, name.clone(), slots.len() as u64);
        let order = BackfillOrder { id, schedule, from, to: last, slots };
        let task = self.start_backfill(tenant, &order).await?;
        Ok(Backfill { slots: Vec::new(), more, task: Some(task) })
    }

    async fn start_backfill(
        &self,
        tenant: &TenantName,
        order: &BackfillOrder,
    ) -> Result<TaskId, ScheduleError> {
        let draft = Draft {
            task_type: Some("backfill".to_owned()),
            payload: serde_json::to_string(order).ok(),
            retries: Some(RETRIES.into()),
            timeout_seconds: Some(TIMEOUT.as_secs_f64()),
            ..Draft::default()
        };
        let mut spec = draft.check().expect("these fields are valid");
        (spec.task_type, spec.queue) = (TypeName::backfill(), QueueName::system());
        let unavailable =
            |why: &dyn std::fmt::Display| store::Error::Unavailable { reason: why.to_string() };
        let submitted = self.submit_system(tenant, spec).await;
        let answer = submitted.map_err(|error| match error {
            submit::Error::Denied(denied) => ScheduleError::Denied(denied),
            error => unavailable(&error).into(),
        })?;
        Ok(answer.map_err(|refused| unavailable(&refused))?.task.id)
    }

    /// Which of these slots have run: by the records of the schedule, which go back only so far, and by
    /// what they would start, which is there until it is deleted.
    pub(crate) async fn slots_that_ran(
        &self,
        view: &ScheduleView,
        defaults: &Settings,
        slots: &[Timestamp],
    ) -> store::Result<HashSet<Timestamp>> {
        let (tenant, name) = (&view.schedule.tenant, &view.schedule.name);
        let records = self.store().slot_records(tenant, name).await?.unwrap_or_default();
        let ran = records.iter().filter(|it| matches!(it.outcome, SlotOutcome::Ran(_)));
        let mut found: HashSet<_> = ran.map(|record| record.slot).collect();
        let runner = SlotRunner::of(view, defaults);
        for slot in slots {
            if found.contains(slot) {
                continue;
            }
            let is_there = match runner.started_by(*slot, view.jitter_of(*slot)) {
                SlotRun::Task(id) => self.store().get(tenant, id).await?.is_some(),
                SlotRun::Workflow(id) => self.store().workflow(tenant, id).await?.is_some(),
            };
            if is_there {
                found.insert(*slot);
            }
        }
        Ok(found)
    }
}

impl ScheduleView {
    /// How long after a slot it starts.
    pub(crate) fn jitter_of(&self, slot: Timestamp) -> Duration {
        self.rule.jitter_of(self.schedule.id, slot)
    }
}

/// The slots from an instant to another, both included, and whether there are more than so many. Many
/// take some time.
async fn find(rule: Rule, from: Timestamp, to: Timestamp, limit: usize) -> (Vec<Timestamp>, bool) {
    let after = from.minus(Duration::from_millis(1));
    let finding = tokio::task::spawn_blocking(move || rule.slots(after, to, limit + 1));
    let mut slots = finding.await.expect("finding slots does not panic");
    let more = slots.len() > limit;
    slots.truncate(limit);
    (slots, more)
}
