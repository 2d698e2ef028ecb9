//! Slots in the reference model: decided in order, and withdrawn.

use std::sync::Arc;

use duly_core::id::{ScheduleId, SessionId, TaskId};
use duly_core::limits::{LANES, SLOT_LOG};
use duly_core::ports::store::{
    Decide, Decided, RunStatus, SlotOrder, SlotOutcome, SubmittedWorkflow,
};
use duly_core::schedule::{
    Overlap, SCHEDULE_CHANGED, SLOT_REPLACED, ScheduleStatus, SkipReason, SlotRun,
};
use duly_core::state::{Event, Status};
use duly_core::task::{Failure, NewTask};
use duly_core::time::Timestamp;
use duly_core::workflow::{Condition, Dependency, Links, WorkflowStatus};

use super::model::Model;
use super::schedules::Stored;
use super::task_state::End;

/// Tasks that were cancelled, with what held each.
type Cancelled = Vec<(TaskId, Option<(SessionId, u32)>)>;

impl Model {
    pub(super) fn decide_slots(&mut self, decide: &Decide, now: Timestamp) -> Decided {
        let Some(stored) = self.schedules.all.get(&decide.schedule) else { return Decided::Stale };
        let schedule = &stored.schedule;
        if schedule.generation != decide.generation {
            return Decided::Stale;
        }
        if let Some((from, to)) = decide.moves {
            let is_open = schedule.status == ScheduleStatus::Active && schedule.position == from;
            if !is_open {
                return repeated(stored, to, decide);
            }
        }
        let (mut slots, mut cancelled) = (Vec::new(), Vec::new());
        for (slot, order) in &decide.slots {
            let known = self.schedules.all[&decide.schedule].slots.get(slot).copied();
            let outcome = match known {
                Some(known) => known,
                None => {
                    let outcome = self.decide_slot(decide, order, now, &mut cancelled);
                    self.tell_of_slot(decide.schedule, *slot, outcome, now);
                    outcome
                }
            };
            let stored = self.schedules.all.get_mut(&decide.schedule).expect("found above");
            stored.slots.insert(*slot, outcome);
            slots.push(outcome);
        }
        let stored = self.schedules.all.get_mut(&decide.schedule).expect("found above");
        if let Some((_, to)) = decide.moves {
            stored.schedule.position = to;
        }
        while stored.slots.len() > SLOT_LOG {
            stored.slots.pop_first();
        }
        Decided::Done { slots, cancelled }
    }

    fn decide_slot(
        &mut self,
        decide: &Decide,
        order: &SlotOrder,
        now: Timestamp,
        cancelled: &mut Cancelled,
    ) -> SlotOutcome {
        if let SlotOrder::Skip(reason) = order {
            return SlotOutcome::Skipped(*reason);
        }
        if self.refuses_lanes(order) {
            return SlotOutcome::Skipped(SkipReason::Refused);
        }
        let last = self.schedules.all[&decide.schedule].last;
        let open = last.and_then(|run| Some((run, self.run_status(run)?))).filter(is_open);
        let mut waits_for = None;
        match (decide.overlap, open) {
            (_, None) | (Overlap::Allow, _) => {}
            (Overlap::Skip, Some(_)) => return SlotOutcome::Skipped(SkipReason::Overlap),
            (Overlap::BufferOne, Some((run, status))) => match (run, status, order) {
                (SlotRun::Task(_), RunStatus::Task(Status::Blocked), _) => {
                    return SlotOutcome::Skipped(SkipReason::Buffered);
                }
                (SlotRun::Task(task), _, SlotOrder::Task(_)) => waits_for = Some(task),
                _ => return SlotOutcome::Skipped(SkipReason::Overlap),
            },
            (Overlap::CancelOther, Some((run, _))) => cancelled.extend(self.replace(run, now)),
        }
        let run = self.start(order, waits_for, now);
        let stored = self.schedules.all.get_mut(&decide.schedule).expect("found above");
        stored.last = Some(run);
        SlotOutcome::Ran(run)
    }

    fn refuses_lanes(&self, order: &SlotOrder) -> bool {
        let mut lanes = self.lanes.clone();
        match order {
            SlotOrder::Task(task) => lanes.extend([task.lane.clone()]),
            SlotOrder::Workflow(new) => lanes.extend(new.tasks.iter().map(|it| it.lane.clone())),
            SlotOrder::Skip(_) => {}
        }
        lanes.len() > LANES && lanes.len() > self.lanes.len()
    }

    fn start(&mut self, order: &SlotOrder, waits_for: Option<TaskId>, now: Timestamp) -> SlotRun {
        match order {
            SlotOrder::Task(task) => {
                if !self.tasks.contains_key(&task.id) {
                    self.lanes.insert(task.lane.clone());
                    self.stored(&after(task, waits_for), None, now);
                }
                SlotRun::Task(task.id)
            }
            SlotOrder::Workflow(new) => {
                let answer = self.submit_workflow(new, now);
                assert!(matches!(answer, SubmittedWorkflow::Stored { .. }), "there is room");
                SlotRun::Workflow(new.id)
            }
            SlotOrder::Skip(_) => unreachable!("it starts nothing"),
        }
    }

    /// Cancels a run for a later one.
    fn replace(&mut self, run: SlotRun, now: Timestamp) -> Cancelled {
        match run {
            SlotRun::Task(id) => {
                let task = self.tasks.get_mut(&id).expect("it is open");
                let runs = task.status == Status::Running;
                let holder = task.session.filter(|_| runs).map(|session| (session, task.epoch));
                task.epoch += u32::from(runs);
                let error = Some(replaced());
                self.ended(id, Event::Cancel, End { at: now, result: None, error });
                self.settle(now);
                vec![(id, holder)]
            }
            SlotRun::Workflow(id) => {
                let workflow = self.workflows.get_mut(&id).expect("it is open");
                workflow.cancelled.get_or_insert(replaced().message);
                Vec::new()
            }
        }
    }

    /// Deletes what slots have started that was never granted. Answers with the position from which
    /// slots are decided again.
    pub(super) fn withdraw(
        &mut self,
        id: ScheduleId,
        (status, is_new_rule): (ScheduleStatus, bool),
        now: Timestamp,
    ) -> Timestamp {
        let stored = &self.schedules.all[&id];
        let was_paused = stored.schedule.status == ScheduleStatus::Paused;
        let (mut first, mut granted) = (None, None);
        for (slot, outcome) in stored.slots.clone().into_iter().rev() {
            let SlotOutcome::Ran(run) = outcome else { continue };
            let SlotRun::Task(task) = run else {
                granted = granted.max(Some(slot));
                continue;
            };
            let is_new = |status: Status| matches!(status, Status::Pending | Status::Blocked);
            let waits = self.tasks.get(&task).is_some_and(|it| it.epoch == 0 && is_new(it.status));
            if !waits {
                granted = granted.max(Some(slot));
                continue;
            }
            first = Some(slot);
            let error = Some(Failure::new(SCHEDULE_CHANGED, "its schedule was changed"));
            self.ended(task, Event::Cancel, End { at: now, result: None, error });
            self.settle(now);
            // A task of a client may wait for it, and is to find it.
            if !self.has_open_children(task) {
                self.deleted(task, now);
            }
            self.schedules.all.get_mut(&id).expect("found above").slots.remove(&slot);
        }
        if was_paused && status == ScheduleStatus::Active {
            return now;
        }
        let position = match is_new_rule {
            true => now,
            false => self.schedules.all[&id].schedule.position.min(now),
        };
        let before = first.map_or(position, |first| just_before(first).min(position));
        granted.map_or(before, |granted| before.max(granted.min(now)))
    }
}

/// The outcome of an earlier call with the same slots, if it was this one that moved the position.
fn repeated(stored: &Stored, to: Timestamp, decide: &Decide) -> Decided {
    let known = decide.slots.iter().map(|(slot, _)| stored.slots.get(slot).copied());
    match known.collect::<Option<Vec<_>>>() {
        Some(slots) if stored.schedule.position == to => {
            Decided::Done { slots, cancelled: Vec::new() }
        }
        _ => Decided::Stale,
    }
}

fn is_open((_, status): &(SlotRun, RunStatus)) -> bool {
    match status {
        RunStatus::Task(status) => !status.is_terminal(),
        RunStatus::Workflow(status) => *status == WorkflowStatus::Running,
    }
}

/// A task that waits for another to end, if there is one.
fn after(task: &NewTask, waits_for: Option<TaskId>) -> NewTask {
    let mut task = task.clone();
    if let Some(parent) = waits_for {
        let mut links: Links = task.links.as_deref().cloned().unwrap_or_default();
        links.dependencies.push(Dependency { parent, on: Condition::Done });
        task.links = Some(Arc::new(links));
    }
    task
}

fn just_before(slot: Timestamp) -> Timestamp {
    Timestamp::clamped(slot.millis() - 1)
}

fn replaced() -> Failure {
    Failure::new(SLOT_REPLACED, "a later slot of its schedule has taken its place")
}
