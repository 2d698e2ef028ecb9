//! What events say that are not about tasks.

use duly_core::id::{NodeId, TaskId, WorkflowId};
use duly_core::time::Timestamp;
use duly_core::workflow::WorkflowStatus;
use serde::{Deserialize, Serialize};

/// A workflow was submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkflowStartedData {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub workflow_id: WorkflowId,
    /// Its name; empty if it has none.
    pub name: String,
}

/// All tasks of a workflow have ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkflowEndedData {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub workflow_id: WorkflowId,
    /// `SUCCESS`, `FAILED` or `CANCELLED`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "SUCCESS"))]
    pub status: WorkflowStatus,
}

/// A slot of a schedule runs: a task or a workflow was submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleFiredData {
    /// The schedule's name.
    pub schedule: String,
    /// When the slot was due.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub slot: Timestamp,
    /// The task, if the schedule submits tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = "uuid"))]
    pub task_id: Option<TaskId>,
    /// The workflow, if it submits workflows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = "uuid"))]
    pub workflow_id: Option<WorkflowId>,
}

/// A slot of a schedule does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleSkippedData {
    /// The schedule's name.
    pub schedule: String,
    /// When the slot was due.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub slot: Timestamp,
    /// Why, such as `OVERLAP`.
    #[cfg_attr(feature = "openapi", schema(example = "OVERLAP"))]
    pub reason: String,
}

/// The settings have a new version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SettingsChangedData {
    /// Its number.
    pub version: u64,
}

/// Nothing of a queue starts any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueuePausedData {
    /// The queue's name.
    pub queue: String,
    /// Why, for people; empty if nothing was said.
    pub note: String,
}

/// A queue goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueResumedData {
    /// The queue's name.
    pub queue: String,
}

/// A node has joined or left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeData {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub node_id: NodeId,
    /// Its name.
    pub name: String,
}

/// Another node leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaderChangedData {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub node_id: NodeId,
    /// Grows whenever the lead is taken anew.
    pub term: u64,
}
