//! Failed tasks that wait for a person, and what can be ordered for them.

use duly_core::error_group::{ErrorGroup, pattern};
use duly_core::id::TaskId;
use duly_core::ports::store::DeadGroup;
use duly_core::task::Task;
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::TaskView;

/// A failed task, and which others failed like it.
// Two objects and not one: raw JSON such as a payload does not survive a flattened reading.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadLetter {
    /// The task.
    pub task: TaskView,
    /// Names what failures have in common: their code, and their message without what differs
    /// from task to task. The filter `group:` takes it.
    #[cfg_attr(feature = "openapi", schema(required = true, example = "0123456789abcdef"))]
    pub error_group: Option<String>,
}

/// One page of dead letters, last failure first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadLetterPage {
    /// The dead letters.
    pub items: Vec<DeadLetter>,
    /// Give it as `cursor` to get the next page; `null` on the last one.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub next_cursor: Option<String>,
    /// How many dead letters were looked at to fill the page.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true, maximum = 10_000))]
    pub scanned: u32,
    /// Whether the page ended because it had looked at as many as it may, not because it was full
    /// or nothing was left: go on with `nextCursor`, or narrow the filter.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub partial: bool,
}

/// Dead letters of one queue and type that failed alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorGroupView {
    /// Names what they have in common; the filter `group:` takes it.
    pub group: String,
    /// The message without what differs from task to task.
    pub pattern: String,
    /// The code of their errors.
    pub code: String,
    /// The message of the one that failed last.
    pub message: String,
    /// Their queue.
    pub queue: String,
    /// Their type.
    pub r#type: String,
    /// How many there are.
    pub count: u64,
    /// When the first of them failed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub first_failed_at: Timestamp,
    /// When the last of them failed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub last_failed_at: Timestamp,
    /// The one that failed last.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub sample_task_id: TaskId,
}

/// Dead letters by queue, type and error, the largest group first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = groups_example))]
pub struct ErrorGroupPage {
    /// The groups.
    pub items: Vec<ErrorGroupView>,
    /// Always `null`: narrow the filter to see smaller groups.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub next_cursor: Option<String>,
    /// How many dead letters were looked at, the last failure first.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true, maximum = 50_000))]
    pub scanned: u32,
    /// Whether there are older ones that were not looked at, and so are not counted: narrow the
    /// filter.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub partial: bool,
}

/// Which dead letters to run again, and how fast.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = replay_dead_example))]
pub struct ReplayDeadRequest {
    /// Terms such as `queue:mail type:email since:24h`; all dead letters if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Spreads the runs: so many become due each second. All at once if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0, maximum = 100_000))]
    pub per_second: Option<f64>,
}

/// What became of a replay of dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReplayDeadAnswer {
    /// How many will run again, so far.
    #[cfg_attr(feature = "openapi", schema(example = 29))]
    pub replayed: u64,
    /// Whether some may be left: the bulk action still runs, or it failed or was aborted.
    pub more: bool,
    /// The bulk action that does it.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub bulk_id: TaskId,
}

/// Which dead letters to delete for ever.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = purge_dead_example))]
pub struct PurgeDeadRequest {
    /// Terms such as `queue:mail type:email since:24h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Must be `true` where no filter spares anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
}

/// What became of a purge of dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PurgeDeadAnswer {
    /// How many are gone, so far.
    #[cfg_attr(feature = "openapi", schema(example = 29))]
    pub purged: u64,
    /// Whether some may be left: the bulk action still runs, or it failed or was aborted.
    pub more: bool,
    /// The bulk action that does it.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub bulk_id: TaskId,
}

impl From<Task> for DeadLetter {
    fn from(task: Task) -> Self {
        let error_group = task.error.as_ref().map(|error| ErrorGroup::of(error).to_string());
        Self { task: task.into(), error_group }
    }
}

impl From<DeadGroup> for ErrorGroupView {
    fn from(group: DeadGroup) -> Self {
        Self {
            group: group.group.to_string(),
            pattern: pattern(&group.error.message),
            code: group.error.code,
            message: group.error.message,
            queue: group.queue.into(),
            r#type: group.task_type.into(),
            count: group.count,
            first_failed_at: group.first_failed_at,
            last_failed_at: group.last_failed_at,
            sample_task_id: group.sample,
        }
    }
}

#[cfg(feature = "openapi")]
fn replay_dead_example() -> serde_json::Value {
    serde_json::json!({"filter": "type:echo since:24h", "perSecond": 10})
}

#[cfg(feature = "openapi")]
fn purge_dead_example() -> serde_json::Value {
    serde_json::json!({"filter": "type:echo since:24h"})
}

#[cfg(feature = "openapi")]
fn groups_example() -> serde_json::Value {
    serde_json::json!({"items": [{
        "group": "0123456789abcdef", "pattern": "SMTP # auth failed", "code": "SMTP_ERROR",
        "message": "SMTP 535 auth failed", "queue": "mail", "type": "email", "count": 29,
        "firstFailedAt": "2030-01-31T08:01:30.004Z", "lastFailedAt": "2030-01-31T09:12:00.120Z",
        "sampleTaskId": "01920000-0000-7000-8000-000000000000"
    }], "nextCursor": null, "scanned": 29, "partial": false})
}
