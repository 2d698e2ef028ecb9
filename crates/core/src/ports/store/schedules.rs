//! Schedules and the slots that they have fired.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::Result;
use crate::event::Event;
use crate::id::{ScheduleId, SessionId, TaskId};
use crate::name::{ScheduleName, TenantName};
use crate::schedule::{Definition, Overlap, Schedule, ScheduleStatus, SkipReason, SlotRun};
use crate::state::Status;
use crate::task::NewTask;
use crate::time::Timestamp;
use crate::workflow::{NewWorkflow, WorkflowStatus};

/// What must be true of a schedule for a change of it to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nothing.
    Any,
    /// There is none of this name.
    Absent,
    /// It has this version.
    Version(u64),
}

/// A schedule to create or to replace.
#[derive(Clone, Debug)]
pub struct PutSchedule {
    /// Its id if it is new.
    pub id: ScheduleId,
    /// Whose.
    pub tenant: TenantName,
    /// Its name.
    pub name: ScheduleName,
    /// When it fires and what it runs.
    pub definition: Definition,
    /// Searchable marks.
    pub labels: BTreeMap<String, String>,
    /// Whether it fires.
    pub status: ScheduleStatus,
    /// For people.
    pub note: Option<String>,
    /// Whether the order comes from a configuration file.
    pub managed: bool,
    /// What is known of the schedule.
    pub expected: Expected,
}

/// A schedule to pause or to resume.
#[derive(Clone, Debug)]
pub struct SwitchSchedule {
    /// Whose.
    pub tenant: TenantName,
    /// Its name.
    pub name: ScheduleName,
    /// Whether it fires from now on.
    pub status: ScheduleStatus,
    /// For people; without one, the note stays.
    pub note: Option<String>,
    /// What is known of the schedule.
    pub expected: Expected,
}

/// A schedule to delete.
#[derive(Clone, Debug)]
pub struct DeleteSchedule {
    /// Whose.
    pub tenant: TenantName,
    /// Its name.
    pub name: ScheduleName,
    /// Whether the order comes from a configuration file.
    pub managed: bool,
    /// What is known of the schedule.
    pub expected: Expected,
}

/// What became of a change to a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleChange {
    /// It is so now; `created` if there was none before. A deleted one as it was.
    Done {
        /// The schedule.
        schedule: Box<Schedule>,
        /// Whether it is new.
        created: bool,
    },
    /// It has another version than expected, or there is one where none was expected.
    Conflict {
        /// Its version.
        version: u64,
    },
    /// A configuration file defines it, and the order is a request's, or the other way round.
    Managed,
    /// There is none of this name.
    Unknown,
    /// There are as many as may be: [`crate::limits::SCHEDULES`].
    TooMany,
}

/// Which page of a tenant's schedules.
#[derive(Clone, Debug)]
pub struct ListSchedules {
    /// Whose.
    pub tenant: TenantName,
    /// Only those in this state.
    pub status: Option<ScheduleStatus>,
    /// Only those with these marks.
    pub labels: BTreeMap<String, String>,
    /// Only those whose name comes after this one.
    pub after: Option<ScheduleName>,
    /// How many.
    pub limit: u32,
}

/// A page of schedules, by name.
#[derive(Clone, Debug, Default)]
pub struct ScheduleList {
    /// The schedules.
    pub schedules: Vec<Schedule>,
    /// Where the next page starts, if there is one: the last schedule looked at.
    pub next_after: Option<ScheduleName>,
}

/// What is to become of a slot.
#[derive(Clone, Debug, PartialEq)]
pub enum SlotOrder {
    /// It runs a task, unless the overlap rule objects.
    Task(Box<NewTask>),
    /// It runs a workflow, unless the overlap rule objects.
    Workflow(Box<NewWorkflow>),
    /// It does not run.
    Skip(SkipReason),
}

/// Slots of one schedule to decide, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Decide {
    /// The schedule.
    pub schedule: ScheduleId,
    /// The generation that the slots belong to.
    pub generation: u32,
    /// From where to where its position moves. `None` for slots that are asked for by name, as by a
    /// trigger or a backfill: these leave the position where it is, and fire while it is paused, too.
    pub moves: Option<(Timestamp, Timestamp)>,
    /// What happens while an earlier run has not ended.
    pub overlap: Overlap,
    /// The slots, oldest first. At most [`crate::limits::STORE_BATCH`] tasks and workflows in one call.
    pub slots: Vec<(Timestamp, SlotOrder)>,
}

/// What became of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotOutcome {
    /// It has started this.
    Ran(SlotRun),
    /// It was skipped.
    Skipped(SkipReason),
}

impl SlotOutcome {
    /// What there is to tell of it, about a slot of this schedule.
    pub fn event(
        self,
        (tenant, schedule): (&TenantName, &ScheduleName),
        slot: Timestamp,
        at: Timestamp,
    ) -> Event {
        match self {
            Self::Ran(run) => Event::schedule_fired(tenant, schedule, (slot, run), at),
            Self::Skipped(why) => Event::schedule_skipped(tenant, schedule, (slot, why), at),
        }
    }
}

/// What became of the slots of one schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided {
    /// They are decided, now or by an earlier call.
    Done {
        /// One for each slot, in order.
        slots: Vec<SlotOutcome>,
        /// Tasks that were cancelled for later slots, with the session that held each and the epoch of
        /// its lease.
        cancelled: Vec<(TaskId, Option<(SessionId, u32)>)>,
    },
    /// The schedule was changed, paused or deleted, or its position is another. Nothing happened.
    Stale,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// A task.
    Task(Status),
    /// A workflow.
    Workflow(WorkflowStatus),
}

/// A slot that was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRecord {
    /// The slot.
    pub slot: Timestamp,
    /// What became of it.
    pub outcome: SlotOutcome,
    /// How far its run has come; nothing if it was skipped or what it started was deleted.
    pub status: Option<RunStatus>,
}

/// Schedules and their slots.
///
/// A slot is decided once: in the commit that moves the position of its schedule past it, which also
/// stores what it starts, and a record of it. An edit, a pause or the deletion of a schedule raises its
/// generation, deletes what its slots have started that was never granted, and moves the position back to
/// before the first of these. With a new rule nothing else lies before now.
#[async_trait]
pub trait Schedules {
    /// Creates a schedule, or replaces one. Repeated with the same content it is done.
    async fn put_schedule(&self, put: PutSchedule) -> Result<ScheduleChange>;

    /// Pauses or resumes a schedule. One that is so already stays as it is.
    async fn switch_schedule(&self, switch: SwitchSchedule) -> Result<ScheduleChange>;

    /// Deletes a schedule and the records of its slots. What they have started stays, as far as it was
    /// granted.
    async fn delete_schedule(&self, delete: DeleteSchedule) -> Result<ScheduleChange>;

    /// One schedule. Another tenant's is absent.
    async fn schedule(&self, tenant: &TenantName, name: &ScheduleName) -> Result<Option<Schedule>>;

    /// One page of a tenant's schedules, by name. It looks at [`crate::limits::SCAN_ROWS`] at the most and
    /// then says where to go on.
    async fn schedules(&self, page: ListSchedules) -> Result<ScheduleList>;

    /// Schedules of all tenants with a version above this one, lowest first. A change that was committed
    /// late may have a version below: [`Self::schedule_versions`] finds it. There may be fewer than `limit`,
    /// and more all the same; only an empty answer says that there are no more. A damaged one is left out.
    async fn schedules_changed(&self, above: u64, limit: u32) -> Result<Vec<Schedule>>;

    /// The ids, by which they come, and the versions of all schedules after this one.
    async fn schedule_versions(
        &self,
        after: Option<ScheduleId>,
        limit: u32,
    ) -> Result<Vec<(ScheduleId, u64)>>;

    /// Schedules by their ids, those that are there and not damaged.
    async fn schedules_by_id(&self, ids: Vec<ScheduleId>) -> Result<Vec<Schedule>>;

    /// Decides slots of several schedules; one answer for each, in order. Each schedule is named once.
    async fn decide_slots(&self, decisions: Vec<Decide>) -> Result<Vec<Decided>>;

    /// The records of a schedule's slots, newest slot first: the last [`crate::limits::SLOT_LOG`] are
    /// kept.
    async fn slot_records(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
    ) -> Result<Option<Vec<SlotRecord>>>;
}
