//! What becomes of schedules and slots, as far as it does not depend on how they are stored. The
//! reference model has the same rules in its own words.

use std::sync::Arc;

use duly_core::id::TaskId;
use duly_core::limits::STORE_BATCH;
use duly_core::ports::store::{
    Decide, DeleteSchedule, Error, Expected, PutSchedule, RunStatus, ScheduleChange, SlotOrder,
    SwitchSchedule,
};
use duly_core::schedule::{
    Overlap, SCHEDULE_CHANGED, SLOT_REPLACED, Schedule, ScheduleStatus, SkipReason, SlotRun,
};
use duly_core::state::Status;
use duly_core::task::{Failure, NewTask};
use duly_core::time::Timestamp;
use duly_core::workflow::{Condition, Dependency, WorkflowStatus};

/// What to do about an order for a schedule. Versions are the store's to give.
pub(crate) enum Change {
    /// Nothing is written.
    Answer(ScheduleChange),
    /// It is new.
    Create(Schedule),
    /// It becomes this. If it `withdraws`, its position is to be found first.
    Update { after: Schedule, withdraws: bool },
    /// It goes, with what its slots have started that was not granted.
    Delete(Schedule),
}

/// Creates or replaces.
pub(crate) fn put(before: Option<Schedule>, put: PutSchedule, now: Timestamp) -> Change {
    let Some(before) = before else {
        return match put.expected {
            Expected::Version(_) => Change::Answer(ScheduleChange::Unknown),
            Expected::Any | Expected::Absent => Change::Create(new(put, now)),
        };
    };
    if before.managed != put.managed {
        return Change::Answer(ScheduleChange::Managed);
    }
    let moves = before.definition != put.definition || before.status != put.status;
    let is_same = !moves && before.labels == put.labels && before.note == put.note;
    // This very order, whose answer was lost.
    let repeated = is_same && before.id == put.id;
    if repeated || is_same && put.expected != Expected::Absent {
        return unchanged(before, repeated);
    }
    if let Some(conflict) = conflict(put.expected, &before) {
        return conflict;
    }
    let after = Schedule {
        definition: put.definition,
        labels: put.labels,
        status: put.status,
        note: put.note,
        ..before
    };
    update(after, moves, now)
}

/// Pauses or resumes.
pub(crate) fn switch(before: Option<Schedule>, switch: &SwitchSchedule, now: Timestamp) -> Change {
    let Some(before) = before else { return Change::Answer(ScheduleChange::Unknown) };
    if before.managed {
        return Change::Answer(ScheduleChange::Managed);
    }
    let note = switch.note.clone().or_else(|| before.note.clone());
    let moves = before.status != switch.status;
    if !moves && before.note == note {
        return unchanged(before, false);
    }
    if let Some(conflict) = conflict(switch.expected, &before) {
        return conflict;
    }
    update(Schedule { status: switch.status, note, ..before }, moves, now)
}

/// Deletes.
pub(crate) fn delete(before: Option<Schedule>, delete: &DeleteSchedule) -> Change {
    let Some(before) = before else { return Change::Answer(ScheduleChange::Unknown) };
    if before.managed != delete.managed {
        return Change::Answer(ScheduleChange::Managed);
    }
    conflict(delete.expected, &before).unwrap_or(Change::Delete(before))
}

fn new(put: PutSchedule, now: Timestamp) -> Schedule {
    Schedule {
        id: put.id,
        tenant: put.tenant,
        name: put.name,
        definition: put.definition,
        labels: put.labels,
        status: put.status,
        note: put.note,
        managed: put.managed,
        generation: 1,
        version: 0,
        position: now,
        created_at: now,
        updated_at: now,
    }
}

fn unchanged(schedule: Schedule, created: bool) -> Change {
    Change::Answer(ScheduleChange::Done { schedule: Box::new(schedule), created })
}

fn conflict(expected: Expected, before: &Schedule) -> Option<Change> {
    let is_met = match expected {
        Expected::Any => true,
        Expected::Absent => false,
        Expected::Version(wanted) => wanted == before.version,
    };
    let conflict = ScheduleChange::Conflict { version: before.version };
    (!is_met).then_some(Change::Answer(conflict))
}

fn update(after: Schedule, withdraws: bool, now: Timestamp) -> Change {
    let generation = after.generation + u32::from(withdraws);
    Change::Update { after: Schedule { generation, updated_at: now, ..after }, withdraws }
}

/// The slots of a schedule that was just changed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Withdrawn {
    /// The first slot whose task was deleted.
    pub(crate) first: Option<Timestamp>,
    /// The last slot that stays and has started something.
    pub(crate) granted: Option<Timestamp>,
}

/// From where slots are decided again. `position` and `was` are those of before.
pub(crate) fn position_after(
    (position, was): (Timestamp, ScheduleStatus),
    status: ScheduleStatus,
    Withdrawn { first, granted }: Withdrawn,
    now: Timestamp,
) -> Timestamp {
    if (was, status) == (ScheduleStatus::Paused, ScheduleStatus::Active) {
        return now;
    }
    let position = position.min(now);
    let before = |slot: Timestamp| Timestamp::clamped(slot.millis() - 1);
    let again = first.map_or(position, |first| before(first).min(position));
    granted.map_or(again, |granted| again.max(granted.min(now)))
}

/// How a slot starts what it is to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Not at all.
    Skip(SkipReason),
    /// Whatever else runs.
    AtOnce,
    /// As soon as this task has ended.
    After(TaskId),
    /// At once, and this is cancelled.
    InsteadOf(SlotRun),
}

/// Applies the overlap rule. `last` is what the schedule has started last, if that is still there.
pub(crate) fn start(
    overlap: Overlap,
    last: Option<(SlotRun, RunStatus)>,
    order: &SlotOrder,
) -> Start {
    let Some((run, status)) = last.filter(|(_, status)| is_open(*status)) else {
        return Start::AtOnce;
    };
    match (overlap, run, order) {
        (Overlap::Allow, ..) => Start::AtOnce,
        (Overlap::CancelOther, ..) => Start::InsteadOf(run),
        (Overlap::BufferOne, SlotRun::Task(_), _) if status == RunStatus::Task(Status::Blocked) => {
            Start::Skip(SkipReason::Buffered)
        }
        (Overlap::BufferOne, SlotRun::Task(task), SlotOrder::Task(_)) => Start::After(task),
        (Overlap::Skip | Overlap::BufferOne, ..) => Start::Skip(SkipReason::Overlap),
    }
}

fn is_open(status: RunStatus) -> bool {
    match status {
        RunStatus::Task(status) => !status.is_terminal(),
        RunStatus::Workflow(status) => status == WorkflowStatus::Running,
    }
}

/// The task, which waits for another to end.
pub(crate) fn waiting_for(task: &NewTask, parent: TaskId) -> NewTask {
    let mut task = task.clone();
    let mut links = task.links.as_deref().cloned().unwrap_or_default();
    links.dependencies.push(Dependency { parent, on: Condition::Done });
    task.links = Some(Arc::new(links));
    task
}

/// Refuses what would make a long commit.
pub(crate) fn check_size(decisions: &[Decide]) -> Result<(), Error> {
    let starts = |it: &Decide| it.slots.iter().filter(|(_, it)| is_start(it)).count();
    match decisions.iter().map(starts).sum::<usize>() > STORE_BATCH {
        true => Err(Error::TooLarge { what: "a batch of slots", limit: STORE_BATCH }),
        false => Ok(()),
    }
}

fn is_start(order: &SlotOrder) -> bool {
    !matches!(order, SlotOrder::Skip(_))
}

/// The error of a task that is cancelled for a later slot.
pub(crate) fn replaced() -> Failure {
    Failure::new(SLOT_REPLACED, "a later slot of its schedule has taken its place")
}

/// The error of a task that is withdrawn and cannot be deleted.
pub(crate) fn withdrawn() -> Failure {
    Failure::new(SCHEDULE_CHANGED, "its schedule was changed")
}
