//! Schedules in the reference model: definitions, and the port.

use std::collections::BTreeMap;

use async_trait::async_trait;
use duly_core::id::ScheduleId;
use duly_core::limits::{SCHEDULES, STORE_BATCH};
use duly_core::name::{ScheduleName, TenantName};
use duly_core::ports::store::{
    self, Decide, Decided, DeleteSchedule, Error, Expected, ListSchedules, PutSchedule, Result,
    RunStatus, ScheduleChange, ScheduleList, SlotOrder, SlotOutcome, SlotRecord, SwitchSchedule,
};
use duly_core::schedule::{Schedule, ScheduleStatus, SlotRun};
use duly_core::time::Timestamp;

use super::MemoryStore;
use super::model::Model;
use crate::audited::Audited as _;

/// The schedules of all tenants.
#[derive(Default)]
pub(super) struct Schedules {
    pub(super) all: BTreeMap<ScheduleId, Stored>,
    /// The version of the latest change.
    version: u64,
}

/// A schedule and what its slots have come to.
pub(super) struct Stored {
    pub(super) schedule: Schedule,
    /// What was started last.
    pub(super) last: Option<SlotRun>,
    pub(super) slots: BTreeMap<Timestamp, SlotOutcome>,
}

#[async_trait]
impl store::Schedules for MemoryStore {
    async fn put_schedule(&self, put: PutSchedule) -> Result<ScheduleChange> {
        let audited = put.audited();
        Ok(self.order(|| audited, |model, now| model.put_schedule(put, now)))
    }

    async fn switch_schedule(&self, switch: SwitchSchedule) -> Result<ScheduleChange> {
        let audited = switch.audited();
        Ok(self.order(|| audited, |model, now| model.switch_schedule(switch, now)))
    }

    async fn delete_schedule(&self, delete: DeleteSchedule) -> Result<ScheduleChange> {
        let audited = || delete.audited();
        Ok(self.order(audited, |model, now| model.delete_schedule(&delete, now)))
    }

    async fn schedule(&self, tenant: &TenantName, name: &ScheduleName) -> Result<Option<Schedule>> {
        let model = self.model.lock();
        let id = model.schedule_named(tenant, name);
        Ok(id.map(|id| model.schedules.all[&id].schedule.clone()))
    }

    async fn schedules(&self, page: ListSchedules) -> Result<ScheduleList> {
        Ok(self.model.lock().list_schedules(&page))
    }

    async fn schedules_changed(&self, above: u64, limit: u32) -> Result<Vec<Schedule>> {
        let model = self.model.lock();
        let all = model.schedules.all.values().map(|it| &it.schedule);
        let mut changed: Vec<_> = all.filter(|it| it.version > above).cloned().collect();
        changed.sort_unstable_by_key(|it| it.version);
        changed.truncate(limit as usize);
        Ok(changed)
    }

    async fn schedule_versions(
        &self,
        after: Option<ScheduleId>,
        limit: u32,
    ) -> Result<Vec<(ScheduleId, u64)>> {
        let model = self.model.lock();
        let all = model.schedules.all.iter();
        let rest = all.filter(|(id, _)| after.is_none_or(|after| **id > after));
        Ok(rest.take(limit as usize).map(|(id, it)| (*id, it.schedule.version)).collect())
    }

    async fn schedules_by_id(&self, ids: Vec<ScheduleId>) -> Result<Vec<Schedule>> {
        let model = self.model.lock();
        let known = ids.iter().filter_map(|id| model.schedules.all.get(id));
        Ok(known.map(|it| it.schedule.clone()).collect())
    }

    async fn decide_slots(&self, decisions: Vec<Decide>) -> Result<Vec<Decided>> {
        let starts = |it: &Decide| it.slots.iter().filter(|(_, it)| is_start(it)).count();
        if decisions.iter().map(starts).sum::<usize>() > STORE_BATCH {
            return Err(Error::TooLarge { what: "a batch of slots", limit: STORE_BATCH });
        }
        let audited = || decisions.as_slice().audited();
        let decided = self.order(audited, |model, now| {
            let decided = decisions.iter().map(|it| model.decide_slots(it, now)).collect();
            model.settle(now);
            decided
        });
        self.hint_at(Some(self.clock.now()));
        Ok(decided)
    }

    async fn slot_records(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
    ) -> Result<Option<Vec<SlotRecord>>> {
        let model = self.model.lock();
        let Some(id) = model.schedule_named(tenant, name) else { return Ok(None) };
        let record = |(slot, outcome): (&Timestamp, &SlotOutcome)| {
            let status = match outcome {
                SlotOutcome::Ran(run) => model.run_status(*run),
                SlotOutcome::Skipped(_) => None,
            };
            SlotRecord { slot: *slot, outcome: *outcome, status }
        };
        Ok(Some(model.schedules.all[&id].slots.iter().rev().map(record).collect()))
    }
}

/// Whether a slot is to start something.
fn is_start(order: &SlotOrder) -> bool {
    !matches!(order, SlotOrder::Skip(_))
}

impl Model {
    pub(super) fn schedule_named(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
    ) -> Option<ScheduleId> {
        let mut all = self.schedules.all.values().map(|it| &it.schedule);
        all.find(|it| it.tenant == *tenant && it.name == *name).map(|it| it.id)
    }

    fn put_schedule(&mut self, put: PutSchedule, now: Timestamp) -> ScheduleChange {
        if let Some(id) = self.schedule_named(&put.tenant, &put.name) {
            return self.replace_schedule(id, put, now);
        }
        if matches!(put.expected, Expected::Version(_)) {
            return ScheduleChange::Unknown;
        }
        if self.schedules.all.len() >= SCHEDULES as usize {
            return ScheduleChange::TooMany;
        }
        let schedule = Schedule {
            id: put.id,
            tenant: put.tenant,
            name: put.name,
            definition: put.definition,
            labels: put.labels,
            status: put.status,
            note: put.note,
            managed: put.managed,
            generation: 1,
            version: self.schedules.next_version(),
            position: now,
            created_at: now,
            updated_at: now,
        };
        let change = ScheduleChange::Done { schedule: Box::new(schedule.clone()), created: true };
        let stored = Stored { schedule, last: None, slots: BTreeMap::new() };
        self.schedules.all.insert(put.id, stored);
        change
    }

    fn replace_schedule(
        &mut self,
        id: ScheduleId,
        put: PutSchedule,
        now: Timestamp,
    ) -> ScheduleChange {
        let before = self.schedules.all[&id].schedule.clone();
        if before.managed != put.managed {
            return ScheduleChange::Managed;
        }
        let is_same = before.definition == put.definition
            && before.status == put.status
            && before.labels == put.labels
            && before.note == put.note;
        // This very order, or one that changes nothing.
        let repeated = is_same && before.id == put.id;
        if repeated || is_same && put.expected != Expected::Absent {
            return ScheduleChange::Done { schedule: Box::new(before), created: repeated };
        }
        if !is_met(put.expected, before.version) {
            return ScheduleChange::Conflict { version: before.version };
        }
        let moves = before.definition != put.definition || before.status != put.status;
        let position = match moves {
            true => {
                let is_new = before.definition.rule != put.definition.rule;
                self.withdraw(id, (put.status, is_new), now)
            }
            false => before.position,
        };
        let version = self.schedules.next_version();
        self.store_schedule(Schedule {
            position,
            generation: before.generation + u32::from(moves),
            version,
            definition: put.definition,
            labels: put.labels,
            status: put.status,
            note: put.note,
            updated_at: now,
            ..before
        })
    }

    fn switch_schedule(&mut self, switch: SwitchSchedule, now: Timestamp) -> ScheduleChange {
        let Some(id) = self.schedule_named(&switch.tenant, &switch.name) else {
            return ScheduleChange::Unknown;
        };
        let before = self.schedules.all[&id].schedule.clone();
        if before.managed {
            return ScheduleChange::Managed;
        }
        let note = switch.note.or_else(|| before.note.clone());
        if before.status == switch.status && before.note == note {
            return ScheduleChange::Done { schedule: Box::new(before), created: false };
        }
        if !is_met(switch.expected, before.version) {
            return ScheduleChange::Conflict { version: before.version };
        }
        let moves = before.status != switch.status;
        let position = match moves {
            true => self.withdraw(id, (switch.status, false), now),
            false => before.position,
        };
        let version = self.schedules.next_version();
        self.store_schedule(Schedule {
            position,
            generation: before.generation + u32::from(moves),
            version,
            status: switch.status,
            note,
            updated_at: now,
            ..before
        })
    }

    fn delete_schedule(&mut self, delete: &DeleteSchedule, now: Timestamp) -> ScheduleChange {
        let Some(id) = self.schedule_named(&delete.tenant, &delete.name) else {
            return ScheduleChange::Unknown;
        };
        let before = self.schedules.all[&id].schedule.clone();
        if before.managed != delete.managed {
            return ScheduleChange::Managed;
        }
        if !is_met(delete.expected, before.version) {
            return ScheduleChange::Conflict { version: before.version };
        }
        self.withdraw(id, (ScheduleStatus::Paused, false), now);
        self.schedules.all.remove(&id);
        // The deletion has a version, too, though none can be found by it.
        self.schedules.next_version();
        ScheduleChange::Done { schedule: Box::new(before), created: false }
    }

    fn store_schedule(&mut self, schedule: Schedule) -> ScheduleChange {
        let stored = self.schedules.all.get_mut(&schedule.id).expect("it was found");
        stored.schedule = schedule.clone();
        ScheduleChange::Done { schedule: Box::new(schedule), created: false }
    }

    fn list_schedules(&self, page: &ListSchedules) -> ScheduleList {
        let ListSchedules { tenant, status, labels, after, limit } = page;
        let own = self.schedules.all.values().map(|it| &it.schedule);
        let mut own: Vec<_> = own.filter(|it| it.tenant == *tenant).collect();
        own.sort_unstable_by_key(|it| &it.name);
        let mut fitting = own.into_iter().filter(|it| {
            after.as_ref().is_none_or(|after| it.name > *after)
                && status.is_none_or(|status| status == it.status)
                && labels.iter().all(|(key, value)| it.labels.get(key) == Some(value))
        });
        let schedules: Vec<_> = fitting.by_ref().take(*limit as usize).cloned().collect();
        let more = fitting.next().is_some();
        let next_after = schedules.last().map(|it| it.name.clone()).filter(|_| more);
        ScheduleList { schedules, next_after }
    }

    /// How far a run has come, if it is still there.
    pub(super) fn run_status(&self, run: SlotRun) -> Option<RunStatus> {
        match run {
            SlotRun::Task(id) => self.tasks.get(&id).map(|it| RunStatus::Task(it.status)),
            SlotRun::Workflow(id) => {
                self.workflows.get(&id).map(|it| RunStatus::Workflow(it.status))
            }
        }
    }
}

impl Schedules {
    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }
}

/// Whether a schedule of this version is what the caller expects.
fn is_met(expected: Expected, version: u64) -> bool {
    match expected {
        Expected::Any => true,
        Expected::Absent => false,
        Expected::Version(wanted) => wanted == version,
    }
}
