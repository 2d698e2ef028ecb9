//! How the reference model carries out orders of people.

use std::sync::Arc;

use duly_core::event::EventKind;
use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::ports::store::{
    CancelTasks, Controlled, EditTask, Replay, ReplayTasks, RetryTasks, TaskChange,
};
use duly_core::state::{Event, Status, transition};
use duly_core::submit::Start;
use duly_core::task::{Failure, Task};
use duly_core::time::Timestamp;

use super::model::Model;
use super::task_state::End;

impl Model {
    pub(super) fn cancel(&mut self, order: &CancelTasks, now: Timestamp) -> Vec<Controlled> {
        let answers = self.each(&order.tenant, &order.tasks, |model, id| {
            let task = model.tasks.get_mut(&id).expect("it was found");
            if task.status == Status::Cancelled {
                return true;
            }
            if transition(task.status, Event::Cancel).is_err() {
                return false;
            }
            task.epoch += u32::from(task.status == Status::Running);
            let error = Some(Failure::new("CANCELLED", order.reason.clone()));
            model.ended(id, Event::Cancel, End { at: now, result: None, error });
            true
        });
        self.settle(now);
        answers
    }

    pub(super) fn replay(&mut self, order: &ReplayTasks, now: Timestamp) -> Vec<Controlled> {
        let mut answers = Vec::new();
        for one in &order.tasks {
            let open = |model: &mut Self, _| model.open_run(one, order.payload.as_ref(), now);
            let before = self.get(&order.tenant, one.task);
            answers.extend(self.each(&order.tenant, &[one.task], open));
            let success = before.as_ref().and_then(Task::success);
            if let Some(success) = success.filter(|it| it.run < self.tasks[&one.task].run) {
                self.keep(one.task, success);
            }
        }
        answers
    }

    /// Opens the next run of a task, unless that was done before. Whether it is open now.
    fn open_run(&mut self, order: &Replay, payload: Option<&Arc<str>>, now: Timestamp) -> bool {
        let task = self.tasks.get_mut(&order.task).expect("it was found");
        if task.run > order.run {
            return true;
        }
        if transition(task.status, Event::Replay).is_err() {
            return false;
        }
        task.payload = Arc::clone(payload.unwrap_or(&task.payload));
        self.replayed(order.task, order.run_at.unwrap_or(now).max(now), now);
        true
    }

    pub(super) fn retry(&mut self, order: &RetryTasks, now: Timestamp) -> Vec<Controlled> {
        self.each(&order.tenant, &order.tasks, |model, id| {
            let task = model.tasks.get_mut(&id).expect("it was found");
            let waits = task.status == Status::Pending && task.charged > 0;
            if waits && task.run_at > now {
                task.run_at = now;
                model.tell(EventKind::TaskEdited, id, now);
            }
            waits
        })
    }

    pub(super) fn edit(&mut self, order: &EditTask, now: Timestamp) -> Controlled {
        let TaskChange { payload, priority, start, retries, timeout, labels } = &order.change;
        let answers = self.each(&order.tenant, &[order.task], |model, id| {
            let task = model.tasks.get_mut(&id).expect("it was found");
            if !matches!(task.status, Status::Pending | Status::Blocked) {
                return false;
            }
            if let (Status::Blocked, Some(start)) = (task.status, start) {
                let delay = if let Start::After(delay) = start { Some(*delay) } else { None };
                model.delays.insert(id, delay);
            }
            task.payload = Arc::clone(payload.as_ref().unwrap_or(&task.payload));
            task.priority = priority.unwrap_or(task.priority);
            task.run_at = start.map_or(task.run_at, |start| start.resolve(now));
            task.retries = retries.unwrap_or(task.retries);
            task.timeout = timeout.or(task.timeout);
            task.labels = labels.clone().unwrap_or_else(|| task.labels.clone());
            model.tell(EventKind::TaskEdited, id, now);
            true
        });
        answers[0]
    }

    fn each(
        &mut self,
        tenant: &TenantName,
        tasks: &[TaskId],
        mut change: impl FnMut(&mut Self, TaskId) -> bool,
    ) -> Vec<Controlled> {
        let mut answers = Vec::new();
        for id in tasks {
            if self.get(tenant, *id).is_none() {
                answers.push(Controlled::Unknown);
                continue;
            }
            let changed = change(self, *id);
            let conflict = Controlled::Conflict { status: self.tasks[id].status };
            answers.push(if changed { Controlled::Done } else { conflict });
        }
        answers
    }
}
