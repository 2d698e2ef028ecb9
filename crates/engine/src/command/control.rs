//! Cancel, replay, retry, delete and edit one task.

use std::collections::BTreeMap;
use std::sync::Arc;

use duly_core::id::TaskId;
use duly_core::limits::RUN_AHEAD;
use duly_core::name::{TenantName, is_reserved};
use duly_core::ports::store::{
    self, CancelTasks, Controlled, DeleteTasks, EditTask, Replay, ReplayTasks, RetryTasks,
    TaskChange,
};
use duly_core::ports::work_source::{TakenBack, Why};
use duly_core::state::Status;
use duly_core::submit::Change;
use duly_core::task::Task;

use super::payloads::BadPayload;
use crate::engine::Engine;

/// Why an action on a task was refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such task.
    #[error("there is no task with this id")]
    NotFound,
    /// The action does not apply to the task's state.
    #[error("the task is {status}")]
    Conflict {
        /// The state.
        status: Status,
    },
    /// Tasks that depend on it have not ended: it cannot be deleted.
    #[error("tasks that depend on it have not ended")]
    OpenChildren,
    /// A task that depends on it has not ended: they cannot run again together.
    #[error("task {task}, which depends on it, is {status}")]
    OpenDescendant {
        /// Which.
        task: TaskId,
        /// Its state.
        status: Status,
    },
    /// The task is a system task, which users cannot change.
    #[error("the task is a system task")]
    Reserved,
    /// The task would start later than any task may.
    #[error("the task would start too far ahead")]
    TooFarAhead,
    /// The tenant may not have the new payload.
    #[error(transparent)]
    Payload(#[from] BadPayload),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Engine {
    /// Ends a task that waits or runs. Its worker is told; the store refuses a later outcome.
    pub async fn cancel(
        &self,
        tenant: &TenantName,
        id: TaskId,
        reason: String,
    ) -> Result<Task, Error> {
        let order = CancelTasks { tenant: tenant.clone(), tasks: vec![id], reason };
        let answers = self.store().cancel(order).await?;
        let task = self.controlled(tenant, id, &answers).await?;
        self.task_waiters().notify_changed([id]);
        self.cascade_now();
        if let (Some(session), Some(epoch)) = (task.session, task.epoch.checked_sub(1)) {
            let lease = TakenBack { task: id, epoch, why: Why::Cancelled };
            self.sessions().take_back(session, lease);
        }
        Ok(task)
    }

    /// Opens the next run of a task that has ended, optionally with another payload (JSON text,
    /// checked by the caller).
    pub async fn replay(
        &self,
        tenant: &TenantName,
        id: TaskId,
        payload: Option<Arc<str>>,
    ) -> Result<Task, Error> {
        let task = self.get(tenant, id).await?.ok_or(Error::NotFound)?;
        if !task.status.is_terminal() {
            return Err(Error::Conflict { status: task.status });
        }
        if payload.is_some() && task.lane.queue.is_reserved() {
            return Err(Error::Reserved);
        }
        if let Some(payload) = &payload {
            self.payload_rules(tenant).await?.check(payload)?;
        }
        let tasks = vec![Replay { task: id, run: task.run, run_at: None }];
        let order = ReplayTasks { tenant: tenant.clone(), tasks, payload };
        let answers = self.store().replay(order).await?;
        self.controlled(tenant, id, &answers).await
    }

    /// Makes a task that waits for its next attempt due now.
    pub async fn retry(&self, tenant: &TenantName, id: TaskId) -> Result<Task, Error> {
        let order = RetryTasks { tenant: tenant.clone(), tasks: vec![id] };
        let answers = self.store().retry(order).await?;
        self.controlled(tenant, id, &answers).await
    }

    /// Deletes a task that has ended, with its attempts and logs.
    pub async fn delete(&self, tenant: &TenantName, id: TaskId) -> Result<(), Error> {
        let task = self.get(tenant, id).await?.ok_or(Error::NotFound)?;
        if task.lane.queue.is_reserved() {
            return Err(Error::Reserved);
        }
        let order = DeleteTasks { tenant: tenant.clone(), tasks: vec![id], before: None };
        match self.store().delete(order).await?.as_slice() {
            [Controlled::Conflict { status }] => Err(Error::Conflict { status: *status }),
            [Controlled::OpenChildren] => Err(Error::OpenChildren),
            _ => Ok(()),
        }
    }

    /// Changes a task that waits.
    pub async fn edit(
        &self,
        tenant: &TenantName,
        id: TaskId,
        change: Change,
    ) -> Result<Task, Error> {
        let task = self.get(tenant, id).await?.ok_or(Error::NotFound)?;
        if task.lane.queue.is_reserved() {
            return Err(Error::Reserved);
        }
        let now = self.store().now().await?;
        if change.start.is_some_and(|start| start.resolve(now) > now.plus(RUN_AHEAD)) {
            return Err(Error::TooFarAhead);
        }
        if let Some(payload) = &change.payload {
            self.payload_rules(tenant).await?.check(payload)?;
        }
        let Change { payload, priority, start, retries, timeout, labels } = change;
        let labels = labels.map(|new| with_reserved(new, &task.labels));
        let change = TaskChange { payload, priority, start, retries, timeout, labels };
        let order = EditTask { tenant: tenant.clone(), task: id, change };
        let answer = self.store().edit(order).await?;
        self.controlled(tenant, id, &[answer]).await
    }

    async fn controlled(
        &self,
        tenant: &TenantName,
        id: TaskId,
        answers: &[Controlled],
    ) -> Result<Task, Error> {
        match answers {
            [Controlled::Done] => self.get(tenant, id).await?.ok_or(Error::NotFound),
            [Controlled::Conflict { status }] => Err(Error::Conflict { status: *status }),
            _ => Err(Error::NotFound),
        }
    }
}

/// New labels of a task, with those that say which schedule it comes from. These never change, so nothing
/// can come between reading and writing them.
fn with_reserved(
    new: BTreeMap<String, String>,
    old: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let kept = old.iter().filter(|(key, _)| is_reserved(key));
    kept.map(|(key, value)| (key.clone(), value.clone())).chain(new).collect()
}
