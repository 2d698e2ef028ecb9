//! Watch a task or a workflow: every change of it, made by any node, within a fraction of a second.

use std::time::Duration;

use duly_core::id::{TaskId, WorkflowId};
use duly_core::name::TenantName;
use duly_core::ports::store;
use duly_core::task::Task;
use tokio::time::Instant;

use super::workflows::WorkflowView;
use crate::engine::Engine;
use crate::task_waiters::Watch;

/// How often a workflow is looked at.
const EVERY: Duration = Duration::from_millis(150);
/// How long to rest after a look at a workflow, as a multiple of its time.
const REST: u32 = 10;

/// A task, whenever it has changed.
pub struct TaskFeed {
    engine: Engine,
    tenant: TenantName,
    id: TaskId,
    watch: Watch,
    /// As it was given last, if it was.
    given: Option<Option<Task>>,
}

/// A workflow, whenever it has changed.
pub struct WorkflowFeed {
    engine: Engine,
    tenant: TenantName,
    id: WorkflowId,
    given: Option<Option<WorkflowView>>,
    look_at: Option<Instant>,
}

impl Engine {
    /// Watches a task.
    pub fn watch_task(&self, tenant: TenantName, id: TaskId) -> TaskFeed {
        let watch = self.task_waiters().watch_closely(id);
        TaskFeed { engine: self.clone(), tenant, id, watch, given: None }
    }

    /// Watches a workflow.
    pub fn watch_workflow(&self, tenant: TenantName, id: WorkflowId) -> WorkflowFeed {
        WorkflowFeed { engine: self.clone(), tenant, id, given: None, look_at: None }
    }
}

impl TaskFeed {
    /// The task as it is now at first, and then whenever it has changed; `None` while there is no such task.
    /// Dropping the call loses nothing.
    pub async fn next(&mut self) -> store::Result<Option<Task>> {
        loop {
            // Created before the read, so that a change in between is not missed.
            let (changed, reported) = (self.watch.changed(), self.watch.reported());
            let task = self.engine.get(&self.tenant, self.id).await?;
            if self.given.as_ref() != Some(&task) {
                self.given = Some(task.clone());
                return Ok(task);
            }
            tokio::select! {
                () = changed => {}
                () = reported => {}
            }
        }
    }
}

impl WorkflowFeed {
    /// The workflow as it is now at first, and then whenever it has changed; `None` while there is no such
    /// workflow. Dropping the call loses nothing.
    pub async fn next(&mut self) -> store::Result<Option<WorkflowView>> {
        loop {
            if let Some(at) = self.look_at {
                tokio::time::sleep_until(at).await;
            }
            let began = Instant::now();
            let workflow = self.engine.workflow(&self.tenant, self.id).await?;
            self.look_at = Some(Instant::now() + EVERY.max(began.elapsed() * REST));
            if self.given.as_ref() != Some(&workflow) {
                self.given = Some(workflow.clone());
                return Ok(workflow);
            }
        }
    }
}
