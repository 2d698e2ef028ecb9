//! What the reference model does when people order something.

use std::sync::Arc;

use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::ports::store::{
    CancelTasks, Controlled, EditTask, Replay, ReplayTasks, RetryTasks, TaskChange,
};
use duly_core::state::{Event, Status, transition};
use duly_core::task::{Failure, Task};
use duly_core::time::Timestamp;

use super::model::Model;

impl Model {
    pub(super) fn cancel(&mut self, order: &CancelTasks, now: Timestamp) -> Vec<Controlled> {
        self.each(&order.tenant, &order.tasks, |task| {
            if task.status == Status::Cancelled {
                return true;
            }
            let Ok(status) = transition(task.status, Event::Cancel) else { return false };
            task.epoch += u32::from(task.status == Status::Running);
            task.status = status;
            task.finished_at = Some(now);
            task.error = Some(Failure::new("CANCELLED", order.reason.clone()));
            true
        })
    }

    pub(super) fn replay(&mut self, order: &ReplayTasks, now: Timestamp) -> Vec<Controlled> {
        let mut answers = Vec::new();
        for one in &order.tasks {
            let open = |task: &mut Task| open_run(task, one, order.payload.as_ref(), now);
            let before = self.get(&order.tenant, one.task);
            answers.extend(self.each(&order.tenant, &[one.task], open));
            let success = before.as_ref().and_then(Task::success);
            if let Some(success) = success.filter(|it| it.run < self.tasks[&one.task].run) {
                self.keep(one.task, success);
            }
        }
        answers
    }

    pub(super) fn retry(&mut self, order: &RetryTasks, now: Timestamp) -> Vec<Controlled> {
        self.each(&order.tenant, &order.tasks, |task| {
            let waits = task.status == Status::Pending && task.charged > 0;
            if waits {
                task.run_at = task.run_at.min(now);
            }
            waits
        })
    }

    pub(super) fn edit(&mut self, order: &EditTask, now: Timestamp) -> Controlled {
        let TaskChange { payload, priority, start, retries, timeout, labels } = &order.change;
        let answers = self.each(&order.tenant, &[order.task], |task| {
            if task.status != Status::Pending {
                return false;
            }
            task.payload = Arc::clone(payload.as_ref().unwrap_or(&task.payload));
            task.priority = priority.unwrap_or(task.priority);
            task.run_at = start.map_or(task.run_at, |start| start.resolve(now));
            task.retries = retries.unwrap_or(task.retries);
            task.timeout = timeout.or(task.timeout);
            task.labels = labels.clone().unwrap_or_else(|| task.labels.clone());
            true
        });
        answers[0]
    }

    fn each(
        &mut self,
        tenant: &TenantName,
        tasks: &[TaskId],
        mut change: impl FnMut(&mut Task) -> bool,
    ) -> Vec<Controlled> {
        let mut answers = Vec::new();
        for id in tasks {
            answers.push(match self.task_mut(tenant, *id) {
                None => Controlled::Unknown,
                Some(task) => {
                    let changed = change(task);
                    let conflict = Controlled::Conflict { status: task.status };
                    if changed { Controlled::Done } else { conflict }
                }
            });
        }
        answers
    }
}

/// Opens the next run of a task, unless that was done before; whether it is so now.
fn open_run(task: &mut Task, order: &Replay, payload: Option<&Arc<str>>, now: Timestamp) -> bool {
    if task.run > order.run {
        return true;
    }
    let Ok(status) = transition(task.status, Event::Replay) else { return false };
    *task = Task {
        status,
        run: task.run + 1,
        charged: 0,
        losses: 0,
        run_at: order.run_at.unwrap_or(now).max(now),
        granted_at: None,
        started_at: None,
        finished_at: None,
        session: None,
        result: None,
        error: None,
        progress: None,
        payload: Arc::clone(payload.unwrap_or(&task.payload)),
        ..task.clone()
    };
    true
}
