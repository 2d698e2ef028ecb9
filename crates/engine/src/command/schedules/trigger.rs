//! Run a schedule now.

use std::time::Duration;

use duly_core::name::{ScheduleName, TenantName};
use duly_core::ports::store::{Decide, Decided, SlotOutcome, SlotRecord};
use duly_core::schedule::Overlap;
use duly_core::settings::Settings;
use duly_core::time::Timestamp;

use super::{ScheduleError, ScheduleView};
use crate::engine::Engine;
use crate::slot_run::SlotRunner;

/// How often a trigger is tried that meets a change of its schedule.
const TRIES: u32 = 5;

impl Engine {
    /// Runs a schedule now, also while it is paused: an additional slot, to which its overlap rule
    /// applies.
    pub async fn trigger_schedule(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
    ) -> Result<SlotRecord, ScheduleError> {
        self.admit_tasks(tenant, 1).await??;
        let defaults = self.defaults_of(tenant).await?;
        let slot = between_slots(self.store().now().await?);
        let mut version = 0;
        for _ in 0..TRIES {
            let view = self.schedule(tenant, name).await?.ok_or(ScheduleError::NotFound)?;
            version = view.schedule.version;
            let decision = one_slot(&view, slot, &defaults);
            let overlap = decision.overlap;
            let mut answers = self.store().decide_slots(vec![decision]).await?;
            if let Some(Decided::Done { slots, cancelled }) = answers.pop()
                && let Some(outcome) = slots.first()
            {
                if overlap == Overlap::CancelOther {
                    self.sessions().tell_cancelled(cancelled);
                    self.cascade_now();
                }
                return self.record(tenant, name, slot, *outcome).await;
            }
        }
        Err(ScheduleError::Conflict { version })
    }

    async fn record(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
        slot: Timestamp,
        outcome: SlotOutcome,
    ) -> Result<SlotRecord, ScheduleError> {
        let records = self.store().slot_records(tenant, name).await?.unwrap_or_default();
        let own = records.into_iter().find(|record| record.slot == slot);
        Ok(own.unwrap_or(SlotRecord { slot, outcome, status: None }))
    }
}

/// A slot of a trigger: never one of the rule's, which are whole seconds.
fn between_slots(now: Timestamp) -> Timestamp {
    if now.millis() % 1000 == 0 { now.plus(Duration::from_millis(1)) } else { now }
}

fn one_slot(view: &ScheduleView, slot: Timestamp, defaults: &Settings) -> Decide {
    let schedule = &view.schedule;
    let runner = SlotRunner::of(view, defaults);
    Decide {
        schedule: schedule.id,
        generation: schedule.generation,
        moves: None,
        overlap: view.rule.overlap,
        // A person waits for it: the jitter of the schedule does not apply.
        slots: vec![(slot, runner.run(slot, Duration::ZERO))],
    }
}
