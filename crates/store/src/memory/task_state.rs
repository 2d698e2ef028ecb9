//! The only writer of tasks in the reference model. Every change of a task's state is made by one of
//! six hooks; a test of the house finds any other writer. What depends on transitions (workflows,
//! events, limits) attaches here. A hook runs while the model is locked, so that it is one with the
//! command that calls it. It knows the whole task, with its lane, result and error.

use std::sync::Arc;
use std::time::Duration;

use duly_core::event::EventKind;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::Lease;
use duly_core::state::{Event, Status, transition};
use duly_core::task::{Failure, NewTask, Task};
use duly_core::time::Timestamp;

use super::model::{Model, deadline, lease};

/// How a task ends.
pub(super) struct End {
    pub(super) at: Timestamp,
    pub(super) result: Option<Arc<str>>,
    pub(super) error: Option<Failure>,
}

impl Model {
    /// A new task waits, or runs under the session that it is handed off to.
    pub(super) fn stored(&mut self, task: &NewTask, holder: Option<SessionId>, now: Timestamp) {
        let mut stored = new(task, now);
        if let Some(session) = holder {
            grant(&mut stored, session, now);
        }
        self.deadlines.insert(task.id, deadline(&stored));
        if self.tie(&stored) {
            stored.status = Status::Blocked;
            self.delays.insert(task.id, task.delay);
        }
        let epoch = std::mem::replace(&mut stored.epoch, 0);
        self.tasks.insert(task.id, stored);
        self.tell(EventKind::TaskCreated, task.id, now);
        if holder.is_some() {
            self.stored_task(task.id).epoch = epoch;
            self.tell(EventKind::TaskStarted, task.id, now);
        }
    }

    /// BLOCKED → PENDING.
    pub(super) fn unblocked(&mut self, id: TaskId, run_at: Timestamp, now: Timestamp) {
        let task = self.stored_task(id);
        task.status = next(task.status, Event::Unblock);
        task.run_at = run_at;
        self.tell(EventKind::TaskUnblocked, id, now);
    }

    /// PENDING → RUNNING.
    pub(super) fn granted(&mut self, id: TaskId, session: SessionId, now: Timestamp) -> Lease {
        let task = self.stored_task(id);
        grant(task, session, now);
        let (lease, deadline) = (lease(task), deadline(task));
        self.deadlines.insert(id, deadline);
        self.tell(EventKind::TaskStarted, id, now);
        self.with_children(lease)
    }

    /// RUNNING → PENDING, by a retry, a release or a loss.
    pub(super) fn waiting(&mut self, id: TaskId, event: Event, now: Timestamp) {
        let task = self.stored_task(id);
        task.status = next(task.status, event);
        assert_eq!(task.status, Status::Pending);
        let kind = match event {
            Event::Retry => EventKind::TaskRetried,
            Event::Lose => EventKind::TaskLost,
            _ => EventKind::TaskReleased,
        };
        self.tell(kind, id, now);
    }

    /// BLOCKED, PENDING or RUNNING → SUCCESS, FAILED or CANCELLED.
    pub(super) fn ended(&mut self, id: TaskId, event: Event, end: End) {
        let task = self.stored_task(id);
        task.status = next(task.status, event);
        assert!(task.status.is_terminal());
        task.finished_at = Some(end.at);
        task.result = end.result;
        task.error = end.error;
        let kind = match task.status {
            Status::Success => EventKind::TaskSucceeded,
            Status::Failed => EventKind::TaskFailed,
            _ => EventKind::TaskCancelled,
        };
        self.delays.remove(&id);
        self.unsettled.push(id);
        self.tell(kind, id, end.at);
    }

    /// SUCCESS, FAILED or CANCELLED → PENDING, as the next run.
    pub(super) fn replayed(&mut self, id: TaskId, run_at: Timestamp, now: Timestamp) {
        let task = self.stored_task(id);
        *task = Task {
            status: next(task.status, Event::Replay),
            run: task.run + 1,
            charged: 0,
            losses: 0,
            run_at,
            granted_at: None,
            started_at: None,
            finished_at: None,
            session: None,
            result: None,
            error: None,
            progress: None,
            ..task.clone()
        };
        self.reopen(id);
        self.tell(EventKind::TaskReplayed, id, now);
    }

    /// SUCCESS, FAILED or CANCELLED → BLOCKED, as the next run, which was just opened: the task waits
    /// for a parent that runs again.
    pub(super) fn blocked(&mut self, id: TaskId) {
        let task = self.stored_task(id);
        assert_eq!(task.status, Status::Pending, "its run was just opened");
        task.status = next(Status::Cancelled, Event::Block);
        self.delays.insert(id, Some(Duration::ZERO));
    }

    /// SUCCESS, FAILED or CANCELLED → gone, with everything about the task.
    pub(super) fn deleted(&mut self, id: TaskId, now: Timestamp) {
        self.tell(EventKind::TaskDeleted, id, now);
        if let Some(task) = self.tasks.remove(&id) {
            self.untie(&task);
        }
        self.attempts.remove(&id);
        self.forget_logs(id, u32::MAX);
        self.deadlines.remove(&id);
        self.extended.retain(|(task, _)| *task != id);
        for grant in self.grants.values_mut() {
            grant.leases.retain(|(task, _)| *task != id);
        }
    }

    fn stored_task(&mut self, id: TaskId) -> &mut Task {
        self.tasks.get_mut(&id).expect("a hook is called for a stored task")
    }
}

fn new(task: &NewTask, now: Timestamp) -> Task {
    Task {
        id: task.id,
        lane: task.lane.clone(),
        status: Status::Pending,
        priority: task.priority,
        run_at: task.due_at(now),
        created_at: now,
        granted_at: None,
        started_at: None,
        finished_at: None,
        run: 1,
        charged: 0,
        retries: task.retries,
        back_off: task.back_off,
        epoch: 0,
        losses: 0,
        timeout: task.timeout,
        session: None,
        worker: None,
        labels: task.labels.clone(),
        payload: Arc::clone(&task.payload),
        result: None,
        error: None,
        progress: None,
        links: task.links.clone(),
    }
}

fn grant(task: &mut Task, session: SessionId, now: Timestamp) {
    task.status = next(task.status, Event::Grant);
    task.epoch += 1;
    task.session = Some(session);
    task.granted_at = Some(now);
    task.started_at = None;
}

fn next(from: Status, event: Event) -> Status {
    transition(from, event).expect("the model only asks for what can happen")
}
