//! Queues, and why a task in one of them does not run.

use duly_core::id::TaskId;
use duly_core::ports::store::{Counted, Pause, QueueState};
use duly_core::state::Status;
use duly_core::time::Timestamp;
use duly_core::workflow::Condition;
use serde::{Deserialize, Serialize};

use super::ScheduleSlot;

/// A number that was counted up to a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Count {
    /// How many were counted.
    #[cfg_attr(feature = "openapi", schema(example = 128))]
    pub count: u32,
    /// Whether there are more: counting ends at 10,000, in lists at 1,000.
    pub more: bool,
}

/// Since when and why nothing of a queue starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PauseView {
    /// Since when.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub since: Timestamp,
    /// Why, for people.
    #[cfg_attr(feature = "openapi", schema(example = "the mail relay is down"))]
    pub note: String,
}

/// A queue and what is in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = queue_example))]
pub struct QueueView {
    /// Its name.
    pub queue: String,
    /// Whether it is paused; `null` if it is not.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub paused: Option<PauseView>,
    /// Tasks that wait, for their time or for a worker.
    pub waiting: Count,
    /// Those of them that are due.
    pub due: Count,
    /// Tasks that run.
    pub running: Count,
    /// Tasks that failed and wait for a person.
    pub dead: Count,
    /// Since when the task that has waited longest for a worker is due; `null` if none is.
    #[cfg_attr(
        feature = "openapi",
        schema(required = true, value_type = Option<String>, format = DateTime)
    )]
    pub oldest_due_at: Option<Timestamp>,
    /// Tasks submitted through the server that answers, per second over the last minute.
    pub submitted_per_second: f64,
    /// Tasks started through the server that answers, per second over the last minute.
    pub started_per_second: f64,
}

/// Some queues, by name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueuePage {
    /// The queues.
    pub items: Vec<QueueView>,
    /// Give it as `cursor` to get the next page; `null` on the last one.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub next_cursor: Option<String>,
}

/// Why a queue is paused.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PauseRequest {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 500, example = "the mail relay is down"))]
    pub note: Option<String>,
}

/// What kind of thing keeps a task from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ReasonCode {
    /// Its time has not come; see `until`.
    NotDue,
    /// An attempt failed, and the next one waits; see `until`.
    WaitingForRetry,
    /// It waits for other tasks to end; see `parents`.
    Blocked,
    /// Its queue is paused; see `paused`.
    QueuePaused,
    /// No live worker has a handler for its type and serves its queue.
    NoWorker,
    /// Its workers died, so it gets one that runs nothing else.
    Quarantined,
    /// Others of its queue come first; see `ahead`.
    BehindOthers,
    /// It is next; the workers that could take it are busy, or one is about to.
    Next,
    /// It runs.
    Running,
    /// It has ended.
    Ended,
}

/// One thing to know about a task's next start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReasonView {
    /// Which.
    pub code: ReasonCode,
    /// The same in words.
    pub detail: String,
    /// When it passes by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub until: Option<Timestamp>,
    /// The pause of its queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<PauseView>,
    /// How many come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<Count>,
    /// The tasks that it waits for; the first 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<OpenParent>,
}

/// A task that another one waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OpenParent {
    /// The task.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub task_id: TaskId,
    /// Its key, if both belong to the same workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How it must end.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "success"))]
    pub on: Condition,
    /// Where it is in its life.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "RUNNING"))]
    pub status: Status,
}

/// Why a task does not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = explain_example))]
pub struct ExplainView {
    /// The task.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub task_id: TaskId,
    /// Where it is in its life.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "PENDING"))]
    pub status: Status,
    /// All that stands between it and its next start, the most decisive first.
    pub reasons: Vec<ReasonView>,
    /// What a person can do about it, as commands; perhaps nothing.
    #[cfg_attr(feature = "openapi", schema(example = json!(["duly queue resume mail"])))]
    pub next: Vec<String>,
    /// The schedule and the slot that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleSlot>,
}

impl From<Counted> for Count {
    fn from(Counted { count, more }: Counted) -> Self {
        Self { count, more }
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.count, if self.more { "+" } else { "" })
    }
}

impl From<Pause> for PauseView {
    fn from(Pause { since, note }: Pause) -> Self {
        Self { since, note }
    }
}

impl QueueView {
    /// A queue as the store has it, with its rates.
    pub fn new(state: QueueState, submitted_per_second: f64, started_per_second: f64) -> Self {
        Self {
            queue: state.queue.into(),
            paused: state.paused.map(PauseView::from),
            waiting: state.waiting.into(),
            due: state.due.into(),
            running: state.running.into(),
            dead: state.dead.into(),
            oldest_due_at: state.oldest_due,
            submitted_per_second,
            started_per_second,
        }
    }
}

#[cfg(feature = "openapi")]
fn queue_example() -> serde_json::Value {
    let count = |count: u32| serde_json::json!({"count": count, "more": false});
    serde_json::json!({
        "queue": "mail", "paused": null, "waiting": count(128), "due": count(12),
        "running": count(64), "dead": count(3), "oldestDueAt": "2030-01-31T08:01:30.004Z",
        "submittedPerSecond": 41.5, "startedPerSecond": 40.2
    })
}

#[cfg(feature = "openapi")]
fn explain_example() -> serde_json::Value {
    serde_json::json!({
        "taskId": "01920000-0000-7000-8000-000000000000", "status": "PENDING",
        "reasons": [{
            "code": "QUEUE_PAUSED",
            "detail": "the queue mail is paused since 2030-01-31T08:00:00Z: the mail relay is down",
            "paused": {"since": "2030-01-31T08:00:00Z", "note": "the mail relay is down"}
        }],
        "next": ["duly queue resume mail"]
    })
}
