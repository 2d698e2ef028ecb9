//! Workflows and the edges between tasks.

use std::sync::Arc;

use async_trait::async_trait;

use super::Result;
use crate::id::{TaskId, WorkflowId};
use crate::name::{TenantName, TypeName};
use crate::state::Status;
use crate::task::Failure;
use crate::time::Timestamp;
use crate::workflow::{Condition, EdgeState, NewWorkflow, Workflow, WorkflowStatus};

/// What became of a submitted workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmittedWorkflow {
    /// Stored, now or by an earlier call with the same id.
    Stored {
        /// When.
        at: Timestamp,
    },
    /// The idempotency key was used before with the same body, for this workflow.
    Replayed {
        /// The workflow of the first submit.
        id: WorkflowId,
    },
    /// The idempotency key was used before with another body.
    KeyReused,
    /// A task would open one lane too many.
    LaneLimit,
    /// A task depends on a task outside of the workflow that is not there, or is another tenant's.
    UnknownParent {
        /// The parent.
        parent: TaskId,
    },
    /// A parent outside of the workflow would have too many children.
    TooManyChildren {
        /// The parent.
        parent: TaskId,
    },
}

/// A workflow and how many of its tasks are in which state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowState {
    /// The workflow.
    pub workflow: Workflow,
    /// Tasks by state, in the order of [`Status::ALL`].
    pub counts: [u64; Status::ALL.len()],
    /// Failed tasks of which a `failure` or `done` edge takes care.
    pub handled: u64,
}

/// Which page of a tenant's workflows.
#[derive(Clone, Debug)]
pub struct ListWorkflows {
    /// Whose.
    pub tenant: TenantName,
    /// Only those in this state.
    pub status: Option<WorkflowStatus>,
    /// Only those with this name.
    pub name: Option<String>,
    /// Only those with these marks.
    pub labels: std::collections::BTreeMap<String, String>,
    /// Only those whose id is below this one.
    pub before: Option<WorkflowId>,
    /// How many.
    pub limit: u32,
}

/// A page of workflows, the newest first.
#[derive(Clone, Debug)]
pub struct WorkflowList {
    /// The workflows.
    pub workflows: Vec<Workflow>,
    /// Where the next page starts, if there is one: the last workflow looked at.
    pub next_before: Option<WorkflowId>,
}

/// A task of a workflow, without what is large about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The task.
    pub task: TaskId,
    /// Its name in the workflow.
    pub key: String,
    /// Its type.
    pub task_type: TypeName,
    /// Where it is in its life.
    pub status: Status,
    /// Its run.
    pub run: u32,
    /// When its last lease was granted.
    pub granted_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// An edge between two tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// From this task.
    pub parent: TaskId,
    /// To this one.
    pub child: TaskId,
    /// How the parent must end.
    pub on: Condition,
}

/// The tasks of a workflow and the edges that lead to them, by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The workflow.
    pub workflow: Workflow,
    /// Its tasks.
    pub nodes: Vec<Node>,
    /// The edges to them. A parent may be a task outside of the workflow.
    pub edges: Vec<Edge>,
}

impl Graph {
    /// How many tasks are in which state. `None` if one has failed: an edge that takes care of a failure
    /// may lead out of the workflow.
    pub fn state(&self) -> Option<WorkflowState> {
        let mut counts = [0; Status::ALL.len()];
        for node in &self.nodes {
            if node.status == Status::Failed {
                return None;
            }
            counts[node.status.index()] += 1;
        }
        Some(WorkflowState { workflow: self.workflow.clone(), counts, handled: 0 })
    }
}

/// A parent of a task, as its child sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The task.
    pub task: TaskId,
    /// Its name, if both belong to the same workflow.
    pub key: Option<String>,
    /// How it must end.
    pub on: Condition,
    /// What became of the edge.
    pub edge: EdgeState,
    /// Where it is in its life.
    pub status: Status,
    /// JSON text, of a success.
    pub result: Option<Arc<str>>,
    /// Of a failure or a cancellation.
    pub error: Option<Failure>,
}

/// What became of an order for a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowChange {
    /// Carried out for so many tasks, or it was so already.
    Done {
        /// How many tasks changed with it.
        tasks: u64,
    },
    /// The workflow is in a state in which it makes no sense; nothing changed.
    Conflict {
        /// The state.
        status: WorkflowStatus,
    },
    /// There is no such workflow, or it is another tenant's.
    Unknown,
}

/// What became of a replay with everything that depends on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayedDownstream {
    /// The task runs again, and so many tasks wait for it again.
    Done {
        /// How many.
        tasks: u64,
    },
    /// The task or one that depends on it has not ended; nothing changed.
    Conflict {
        /// Which.
        task: TaskId,
        /// Its state.
        status: Status,
    },
    /// There is no such task, or it is another tenant's.
    Unknown,
}

/// One step of the cascade.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cascaded {
    /// The tasks that were cancelled, with the session that held each and the epoch of its lease.
    pub cancelled: Vec<(TaskId, Option<(crate::id::SessionId, u32)>)>,
    /// Whether there may be more to do.
    pub more: bool,
}

/// Workflows and the edges between tasks.
///
/// Whatever ends a task resolves the edges to its children in the same commit. A child whose last edge is
/// satisfied is released: its delay counts from then. A child with a broken edge is cancelled by the
/// *cascade*, and so are the open tasks of a workflow that was cancelled or fails fast.
#[async_trait]
pub trait Workflows {
    /// Stores a workflow with all its tasks, at most [`crate::limits::WORKFLOW_TASKS`], or nothing.
    async fn submit_workflow(&self, workflow: NewWorkflow) -> Result<SubmittedWorkflow>;

    /// One workflow. Another tenant's is absent.
    async fn workflow(&self, tenant: &TenantName, id: WorkflowId) -> Result<Option<WorkflowState>>;

    /// One page of a tenant's workflows, the newest first. It looks at
    /// [`crate::limits::SCAN_ROWS`] at the most and then says where to go on.
    async fn workflows(&self, page: ListWorkflows) -> Result<WorkflowList>;

    /// The tasks and edges of a workflow.
    async fn graph(&self, tenant: &TenantName, id: WorkflowId) -> Result<Option<Graph>>;

    /// The parents of tasks, in the order of their ids; one list per task, in order. Results and errors
    /// are left out from where they exceed [`crate::limits::PARENT_BYTES`] for a task.
    async fn parents(&self, tasks: Vec<TaskId>) -> Result<Vec<Vec<Parent>>>;

    /// Marks a workflow as cancelled. From this commit on none of its blocked tasks is released; the
    /// cascade cancels its open tasks.
    async fn cancel_workflow(
        &self,
        tenant: &TenantName,
        id: WorkflowId,
        reason: String,
    ) -> Result<WorkflowChange>;

    /// Runs the failed tasks of a workflow again. Tasks that were cancelled because of them are BLOCKED
    /// again.
    async fn retry_workflow(&self, tenant: &TenantName, id: WorkflowId) -> Result<WorkflowChange>;

    /// Runs a task again that has ended, and lets all that depends on it wait for it again. `run` is the
    /// run that has ended: if the task is further on, the order was carried out before.
    async fn replay_downstream(
        &self,
        tenant: &TenantName,
        task: TaskId,
        run: u32,
    ) -> Result<ReplayedDownstream>;

    /// Cancels some tasks that can no longer start, at most `limit`. Nothing to do is the common case and
    /// costs a look at an empty index.
    async fn cascade(&self, limit: u32) -> Result<Cascaded>;
}
