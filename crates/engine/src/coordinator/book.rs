//! The schedules that the coordinator knows, and which of them has something to decide when. Pure: it
//! asks neither the store nor the time.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use duly_core::id::ScheduleId;
use duly_core::limits::LOOK_AHEAD;
use duly_core::name::{ScheduleName, TenantName};
use duly_core::schedule::Rule;
use duly_core::time::Timestamp;

/// A schedule that fires.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) generation: u32,
    pub(super) tenant: TenantName,
    pub(super) name: ScheduleName,
    pub(super) rule: Rule,
    /// What it runs, as it is stored.
    pub(super) template: Arc<str>,
    /// Slots up to this instant are decided.
    pub(super) position: Timestamp,
    /// Whether its slots are decided before they come.
    pub(super) ahead: bool,
    /// When it is decided next; never if there is no other slot.
    pub(super) wake: Option<Timestamp>,
}

/// A schedule. It is known also if it does not fire, so that it is not read again.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) version: u64,
    /// Nothing of a schedule that is paused or damaged.
    pub(super) plan: Option<Plan>,
}

/// All schedules, in the order in which they are decided.
#[derive(Debug, Default)]
pub(super) struct Book {
    entries: BTreeMap<ScheduleId, Entry>,
    /// Those to decide at their slot.
    on_time: BTreeSet<(Timestamp, ScheduleId)>,
    /// Those to decide long before.
    ahead: BTreeSet<(Timestamp, ScheduleId)>,
}

impl Book {
    /// Writes a schedule down, instead of what was known of it.
    pub(super) fn put(&mut self, id: ScheduleId, entry: Entry) {
        self.remove(id);
        if let Some(plan) = &entry.plan
            && let Some(wake) = plan.wake
        {
            self.agenda(plan.ahead).insert((wake, id));
        }
        self.entries.insert(id, entry);
    }

    /// Forgets a schedule.
    pub(super) fn remove(&mut self, id: ScheduleId) {
        let plan = self.entries.remove(&id).and_then(|entry| entry.plan);
        if let Some(Plan { wake: Some(wake), ahead, .. }) = plan {
            self.agenda(ahead).remove(&(wake, id));
        }
    }

    /// A schedule that fires.
    pub(super) fn plan(&self, id: ScheduleId) -> Option<&Plan> {
        self.entries.get(&id)?.plan.as_ref()
    }

    /// The version of a schedule, if it is known.
    pub(super) fn version(&self, id: ScheduleId) -> Option<u64> {
        Some(self.entries.get(&id)?.version)
    }

    /// Notes up to where a schedule is decided, and when it is decided next.
    pub(super) fn decided(&mut self, id: ScheduleId, position: Timestamp, wake: Option<Timestamp>) {
        let Some(plan) = self.entries.get_mut(&id).and_then(|entry| entry.plan.as_mut()) else {
            return;
        };
        let ahead = plan.ahead;
        let before = std::mem::replace(&mut plan.wake, wake);
        plan.position = position;
        let agenda = self.agenda(ahead);
        if let Some(before) = before {
            agenda.remove(&(before, id));
        }
        if let Some(wake) = wake {
            agenda.insert((wake, id));
        }
    }

    /// A schedule that cannot fire as it is stands still until it is changed.
    pub(super) fn stop(&mut self, id: ScheduleId) {
        if let Some(version) = self.version(id) {
            self.put(id, Entry { version, plan: None });
        }
    }

    /// When there is something to decide next.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let first = |agenda: &BTreeSet<(Timestamp, _)>| agenda.first().map(|(wake, _)| *wake);
        [&self.on_time, &self.ahead].into_iter().filter_map(first).min()
    }

    /// Schedules to decide now. Those that are decided ahead of their slots can wait for half of that
    /// time, and come only if nothing else is left.
    pub(super) fn due(&self, now: Timestamp, limit: usize) -> Vec<ScheduleId> {
        let until = |agenda: &'_ BTreeSet<(Timestamp, ScheduleId)>, until: Timestamp| {
            let due = agenda.iter().take_while(|(wake, _)| *wake <= until);
            due.take(limit).map(|(_, id)| *id).collect::<Vec<_>>()
        };
        let mut due = until(&self.ahead, now.minus(LOOK_AHEAD / 2));
        due.extend(until(&self.on_time, now));
        due.truncate(limit);
        if due.is_empty() { until(&self.ahead, now) } else { due }
    }

    /// The schedules after one of them, up to and including another, if there is one, by their ids.
    pub(super) fn between(
        &self,
        after: Option<ScheduleId>,
        until: Option<ScheduleId>,
    ) -> impl Iterator<Item = ScheduleId> {
        let first = after.map_or(Bound::Unbounded, Bound::Excluded);
        let known = self.entries.range((first, Bound::Unbounded)).map(|(id, _)| *id);
        known.take_while(move |id| until.is_none_or(|until| *id <= until))
    }

    fn agenda(&mut self, ahead: bool) -> &mut BTreeSet<(Timestamp, ScheduleId)> {
        if ahead { &mut self.ahead } else { &mut self.on_time }
    }
}

#[cfg(test)]
mod tests;
