//! One order for many tasks.

use duly_core::bulk::{BulkNote, BulkOrder};
use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_core::task::Task;
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::TaskError;

/// What to do to many tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = bulk_example))]
pub struct BulkRequest {
    /// `cancel` (those that wait or run), `retry` (those that wait for their next attempt),
    /// `replay` (those that have ended; those that failed if no state is named) or `delete`
    /// (those that have ended).
    #[cfg_attr(feature = "openapi", schema(example = "replay"))]
    pub action: String,
    /// Which tasks, as for `GET /tasks`; times ago refer to the moment of the order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "queue:mail error:timeout since:24h"))]
    pub filter: Option<String>,
    /// These tasks instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>, max_items = 10_000))]
    pub ids: Option<Vec<TaskId>>,
    /// Must be `true` where no filter and no ids spare anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
    /// Do nothing, and tell what would be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    /// Why, for people; with `cancel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 500))]
    pub reason: Option<String>,
    /// Spreads the runs: so many become due each second; with `replay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0, maximum = 100_000))]
    pub per_second: Option<f64>,
}

/// What an order would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkPreview {
    /// Always `true`.
    pub dry_run: bool,
    /// For how many tasks, as far as they were counted.
    #[cfg_attr(feature = "openapi", schema(example = 1234))]
    pub count: u64,
    /// Whether there may be more: 100,000 are looked at.
    pub more: bool,
    /// Some of them.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub sample: Vec<TaskId>,
}

/// An order for many tasks, and how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = bulk_view_example))]
pub struct BulkView {
    /// Its id; that of the task that carries it out.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub bulk_id: TaskId,
    /// What is done.
    pub action: String,
    /// To which tasks.
    pub filter: String,
    /// Whether the filter selects dead letters, as in the `/dlq` routes.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub dead_letters: bool,
    /// Where it is in its life: `PENDING`, `RUNNING`, `SUCCESS`, `FAILED` or, if it was aborted,
    /// `CANCELLED`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "RUNNING"))]
    pub status: Status,
    /// For how many tasks it was carried out.
    pub done: u64,
    /// For how many it could not be, since something else happened to them first.
    pub skipped: u64,
    /// How many there were when it began; `null` if they were not counted.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub total: Option<u64>,
    /// When it was given.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When it ended; `null` until then.
    #[cfg_attr(
        feature = "openapi",
        schema(required = true, value_type = Option<String>, format = DateTime)
    )]
    pub finished_at: Option<Timestamp>,
    /// Why it failed or was aborted; `null` otherwise.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub error: Option<TaskError>,
}

/// Some orders, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkPage {
    /// The orders.
    pub items: Vec<BulkView>,
    /// Give it as `cursor` to get the next page; `null` on the last one.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub next_cursor: Option<String>,
}

/// What `POST /bulk-actions` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum BulkAnswer {
    /// It was a trial.
    Preview(BulkPreview),
    /// It goes on.
    Started(BulkView),
}

/// The result of a task that has carried out an order.
#[derive(Deserialize)]
struct Ended {
    done: u64,
    skipped: u64,
}

impl From<Task> for BulkView {
    fn from(task: Task) -> Self {
        let order: Option<BulkOrder> = serde_json::from_str(&task.payload).ok();
        let progress = task.progress.map(|reported| reported.progress).unwrap_or_default();
        let note = progress.checkpoint.as_deref().and_then(|note| serde_json::from_str(note).ok());
        let note: BulkNote = note.unwrap_or_default();
        let ended = task.result.as_deref().and_then(|result| serde_json::from_str(result).ok());
        let skipped = note.tried.saturating_sub(progress.done);
        let ended = ended.unwrap_or(Ended { done: progress.done, skipped });
        Self {
            bulk_id: task.id,
            action: order.as_ref().map_or("", |order| order.action.word()).to_owned(),
            dead_letters: order.as_ref().is_some_and(|order| order.dead_letters),
            filter: order.map_or_else(String::new, |order| order.filter),
            status: task.status,
            done: ended.done,
            skipped: ended.skipped,
            total: progress.total,
            created_at: task.created_at,
            finished_at: task.finished_at,
            error: task.error.map(TaskError::from),
        }
    }
}

#[cfg(feature = "openapi")]
fn bulk_example() -> serde_json::Value {
    serde_json::json!({"action": "replay", "filter": "type:echo since:24h", "perSecond": 50})
}

#[cfg(feature = "openapi")]
fn bulk_view_example() -> serde_json::Value {
    serde_json::json!({
        "bulkId": "01920000-0000-7000-8000-000000000000", "action": "replay",
        "filter": "queue:mail since:24h", "deadLetters": false, "status": "RUNNING",
        "done": 41_500, "skipped": 2, "total": 100_000, "createdAt": "2030-01-31T08:00:00Z", "finishedAt": null, "error": null
    })
}
