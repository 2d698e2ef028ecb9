//! Workflows: tasks with edges between them.
//!
//! A task with dependencies is BLOCKED until each of its edges is *satisfied*: the parent has ended as
//! the edge's condition asks. An edge whose parent ended otherwise is *broken*: its child can never start
//! and is cancelled. An edge is resolved once; a parent that runs again does not count again.

pub mod consequences;
pub mod critical_path;
pub mod plan;
pub mod request;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{TaskId, WorkflowId};
use crate::name::TenantName;
use crate::state::Status;
use crate::task::{Failure, Idempotency, NewTask};
use crate::time::Timestamp;

/// How a parent must end for its child to start.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// SUCCESS.
    #[default]
    Success,
    /// FAILED.
    Failure,
    /// Any end, also CANCELLED.
    Done,
}

impl Condition {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Success, Self::Failure, Self::Done];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Done => "done",
        }
    }

    /// Whether a parent that ended like this satisfies it.
    pub const fn holds(self, ended: Status) -> bool {
        match self {
            Self::Success => matches!(ended, Status::Success),
            Self::Failure => matches!(ended, Status::Failed),
            Self::Done => ended.is_terminal(),
        }
    }

    /// Whether the child of such an edge takes care of a failed parent.
    pub const fn handles_failure(self) -> bool {
        matches!(self, Self::Failure | Self::Done)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What became of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeState {
    /// The parent has not ended.
    Open,
    /// The parent ended as the condition asks.
    Satisfied,
    /// The parent ended otherwise.
    Broken,
}

impl EdgeState {
    /// The state of an edge with this condition whose parent is in this state.
    pub const fn of(condition: Condition, parent: Status) -> Self {
        if !parent.is_terminal() {
            Self::Open
        } else if condition.holds(parent) {
            Self::Satisfied
        } else {
            Self::Broken
        }
    }
}

/// One thing that a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dependency {
    /// The task that must end first.
    pub parent: TaskId,
    /// How it must end.
    pub on: Condition,
}

/// What ties a task to others. Most tasks have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// What it waits for, by the parents' ids, each once.
    pub dependencies: Vec<Dependency>,
    /// The workflow that it belongs to.
    pub workflow: Option<Membership>,
    /// Whether its payload holds expressions, which are rendered when its lease is handed out.
    pub render: bool,
}

impl Links {
    /// Whether it ties nothing.
    pub fn is_empty(&self) -> bool {
        self.dependencies.is_empty() && self.workflow.is_none() && !self.render
    }
}

/// A task's part in a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Which workflow.
    pub id: WorkflowId,
    /// The task's name in it.
    pub key: String,
}

/// Where a workflow is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum WorkflowStatus {
    /// Some of its tasks have not ended.
    Running,
    /// All have ended, and every failure was handled.
    Success,
    /// All have ended, and a failure was not handled.
    Failed,
    /// It was cancelled, and all have ended.
    Cancelled,
}

impl WorkflowStatus {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Running, Self::Success, Self::Failed, Self::Cancelled];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Success => "SUCCESS",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// How a workflow ends whose last task has ended.
    pub const fn ended(cancelled: bool, unhandled: u64) -> Self {
        match (cancelled, unhandled) {
            (true, _) => Self::Cancelled,
            (false, 0) => Self::Success,
            (false, _) => Self::Failed,
        }
    }
}

impl fmt::Display for WorkflowStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A workflow that is about to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct NewWorkflow {
    /// A submit repeated with the same id changes nothing.
    pub id: WorkflowId,
    /// Whose.
    pub tenant: TenantName,
    /// For people; empty if it has none.
    pub name: String,
    /// Searchable marks.
    pub labels: BTreeMap<String, String>,
    /// Whether the first failure that is not handled cancels what is open.
    pub fail_fast: bool,
    /// Makes a repeated submit answer with the first one's workflow.
    pub idempotency: Option<Idempotency>,
    /// Its tasks, parents before children. Their links name this workflow.
    pub tasks: Vec<NewTask>,
}

/// A stored workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workflow {
    /// Its id.
    pub id: WorkflowId,
    /// Whose.
    pub tenant: TenantName,
    /// For people; empty if it has none.
    pub name: String,
    /// Searchable marks.
    pub labels: BTreeMap<String, String>,
    /// Whether the first failure that is not handled cancels what is open.
    pub fail_fast: bool,
    /// Where it is in its life.
    pub status: WorkflowStatus,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// When its last task ended.
    pub finished_at: Option<Timestamp>,
    /// Tasks that have not ended.
    pub open: u64,
    /// Why it was cancelled, if it was.
    pub cancelled: Option<String>,
}

impl Workflow {
    /// Its last task has ended, and so many failures were not handled.
    pub fn end(&mut self, unhandled: u64, at: Timestamp) {
        self.status = WorkflowStatus::ended(self.cancelled.is_some(), unhandled);
        self.finished_at = Some(at);
    }

    /// One more of its tasks is open. A workflow that had ended runs again.
    pub fn reopen(&mut self) {
        self.open += 1;
        if self.status != WorkflowStatus::Running {
            self.status = WorkflowStatus::Running;
            self.finished_at = None;
            self.cancelled = None;
        }
    }
}

/// The error of a task that was cancelled because one of its edges is broken.
pub fn broken_dependency(parent: TaskId, on: Condition, ended: Status) -> Failure {
    let wanted = match on {
        Condition::Success => "succeed",
        Condition::Failure => "fail",
        Condition::Done => "end",
    };
    let message = format!("depends on task {parent} to {wanted}, which ended as {ended}");
    Failure::new(DEPENDENCY_NOT_MET, message)
}

/// The code of a task that was cancelled because one of its edges is broken.
pub const DEPENDENCY_NOT_MET: &str = "DEPENDENCY_NOT_MET";
/// The code of a field that names a workflow which is not there.
pub const UNKNOWN_WORKFLOW: &str = "UNKNOWN_WORKFLOW";
/// The code of a task that was cancelled with its workflow.
pub const WORKFLOW_CANCELLED: &str = "WORKFLOW_CANCELLED";
/// The code of a task that was cancelled since its workflow fails fast.
pub const WORKFLOW_FAILED: &str = "WORKFLOW_FAILED";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_for_the_ends_they_name() {
        let holds = |on: Condition| Status::ALL.map(|status| on.holds(status));
        assert_eq!(holds(Condition::Success), [false, false, false, true, false, false]);
        assert_eq!(holds(Condition::Failure), [false, false, false, false, true, false]);
        assert_eq!(holds(Condition::Done), [false, false, false, true, true, true]);
    }

    #[test]
    fn an_edge_is_open_until_its_parent_ends() {
        for on in Condition::ALL {
            assert_eq!(EdgeState::of(on, Status::Running), EdgeState::Open);
        }
        assert_eq!(EdgeState::of(Condition::Success, Status::Cancelled), EdgeState::Broken);
        assert_eq!(EdgeState::of(Condition::Done, Status::Cancelled), EdgeState::Satisfied);
    }

    #[test]
    fn a_cancelled_workflow_is_cancelled_whatever_failed() {
        assert_eq!(WorkflowStatus::ended(true, 3), WorkflowStatus::Cancelled);
        assert_eq!(WorkflowStatus::ended(false, 3), WorkflowStatus::Failed);
        assert_eq!(WorkflowStatus::ended(false, 0), WorkflowStatus::Success);
    }
}
