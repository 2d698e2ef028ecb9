//! What a worker tells of its leases while they run.

use std::sync::Arc;

use duly_core::id::{SessionId, TaskId};
use duly_core::log::LogChunk;
use duly_core::ports::store::{ReportItem, Reported};
use duly_core::progress::Progress;
use serde::{Deserialize, Serialize};

use super::finish::LeaseStatus;
use super::text;

/// How far attempts are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = progress_example))]
pub struct ProgressRequest {
    /// The session under which the leases were claimed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub session_id: SessionId,
    /// Which.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1000))]
    pub items: Vec<ProgressItem>,
}

/// How far one attempt is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProgressItem {
    /// Which task.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub task_id: TaskId,
    /// Under which grant.
    pub epoch: u32,
    /// Steps that are done, in a unit of your own.
    #[cfg_attr(feature = "openapi", schema(maximum = 9_007_199_254_740_991_u64))]
    pub done: u64,
    /// Steps there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(maximum = 9_007_199_254_740_991_u64))]
    pub total: Option<u64>,
    /// What it is at, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 500))]
    pub message: Option<String>,
    /// A note for the next attempt: any JSON up to 64 KiB. The last one stays if it is absent.
    #[serde(default, with = "text::optional", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub checkpoint: Option<Arc<str>>,
}

/// How far an attempt came, told together with its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LastProgress {
    /// Steps that are done.
    #[cfg_attr(feature = "openapi", schema(maximum = 9_007_199_254_740_991_u64))]
    pub done: u64,
    /// Steps there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(maximum = 9_007_199_254_740_991_u64))]
    pub total: Option<u64>,
    /// What it was at, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 500))]
    pub message: Option<String>,
    /// A note for the next attempt: any JSON up to 64 KiB. The last one stays if it is absent.
    #[serde(default, with = "text::optional", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub checkpoint: Option<Arc<str>>,
}

/// What attempts log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = logs_example))]
pub struct LogsRequest {
    /// The session under which the leases were claimed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub session_id: SessionId,
    /// Which.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1000))]
    pub items: Vec<LogItem>,
}

/// What one attempt logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogItem {
    /// Which task.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub task_id: TaskId,
    /// Under which grant.
    pub epoch: u32,
    /// How many bytes of the attempt's log come before it. What the server has already is not
    /// added again, so that a piece may be sent again, also as part of a longer one.
    #[cfg_attr(feature = "openapi", schema(maximum = 9_007_199_254_740_991_u64))]
    pub offset: u64,
    /// The text; of more than 64 KiB the end is kept.
    pub text: String,
}

/// One answer per item, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = answer_example))]
pub struct ReportAnswer {
    /// The answers.
    pub items: Vec<ReportedView>,
}

/// What became of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "Reported", as = Reported))]
pub struct ReportedView {
    /// Which task.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub task_id: TaskId,
    /// Under which grant.
    pub epoch: u32,
    /// What became of it. Stop working on what is `LEASE_LOST`.
    pub status: LeaseStatus,
}

impl ProgressItem {
    /// What an item of a report says of progress, if it does.
    pub fn of(item: &ReportItem) -> Option<Self> {
        let (task_id, epoch) = (item.task, item.epoch);
        let Progress { done, total, message, checkpoint } = item.progress.clone()?;
        Some(Self { task_id, epoch, done, total, message, checkpoint })
    }
}

impl From<&Progress> for LastProgress {
    fn from(progress: &Progress) -> Self {
        let Progress { done, total, message, checkpoint } = progress.clone();
        Self { done, total, message, checkpoint }
    }
}

impl LogItem {
    /// What an item of a report says of the log, if it does.
    pub fn of(item: &ReportItem) -> Option<Self> {
        let LogChunk { offset, text } = item.log.as_ref()?;
        let (task_id, epoch, offset) = (item.task, item.epoch, *offset);
        Some(Self { task_id, epoch, offset, text: text.to_string() })
    }
}

impl From<Reported> for LeaseStatus {
    fn from(reported: Reported) -> Self {
        match reported {
            Reported::Done => Self::Done,
            Reported::LeaseLost => Self::LeaseLost,
            Reported::Unknown => Self::Unknown,
        }
    }
}

impl From<LeaseStatus> for Reported {
    fn from(status: LeaseStatus) -> Self {
        match status {
            LeaseStatus::Done => Self::Done,
            LeaseStatus::LeaseLost => Self::LeaseLost,
            LeaseStatus::Unknown => Self::Unknown,
        }
    }
}

#[cfg(feature = "openapi")]
fn progress_example() -> serde_json::Value {
    serde_json::json!({
        "sessionId": "01920000-0000-7000-8000-00000000000a",
        "items": [{"taskId": "01920000-0000-7000-8000-000000000000", "epoch": 1,
            "done": 3, "total": 4, "message": "write the report", "checkpoint": {"row": 1200}}]
    })
}

#[cfg(feature = "openapi")]
fn logs_example() -> serde_json::Value {
    serde_json::json!({
        "sessionId": "01920000-0000-7000-8000-00000000000a",
        "items": [{"taskId": "01920000-0000-7000-8000-000000000000", "epoch": 1,
            "offset": 29, "text": "step 2 of 4: join the customers\n"}]
    })
}

#[cfg(feature = "openapi")]
fn answer_example() -> serde_json::Value {
    serde_json::json!({"items": [
        {"taskId": "01920000-0000-7000-8000-000000000000", "epoch": 1, "status": "DONE"}
    ]})
}
