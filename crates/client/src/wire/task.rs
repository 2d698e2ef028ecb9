//! A task as readers see it.

use std::collections::BTreeMap;

use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_core::task::{Failure, Task};
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::progress::ProgressView;
use super::{Backoff, DependencyView, ScheduleSlot};

/// A task: what was asked for, where it is, and how it ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "Task", as = Task, example = task_example))]
pub struct TaskView {
    /// Names the task for ever: a UUIDv7 whose time is the first due time.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub task_id: TaskId,
    /// Names the handler.
    pub r#type: String,
    /// Where the task waits.
    pub queue: String,
    /// Where it is in its life.
    #[cfg_attr(feature = "openapi", schema(schema_with = status_schema))]
    pub status: Status,
    /// 0 to 9; 9 runs first.
    pub priority: u8,
    /// When it may start, or could have.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub run_at: Timestamp,
    /// When it was submitted.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When a worker last got it.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true, value_type = Option<String>, format = DateTime))]
    pub leased_at: Option<Timestamp>,
    /// When the handler of its last attempt started. A worker tells that with the outcome, so it is
    /// null until the run has ended.
    #[cfg_attr(feature = "openapi", schema(required = true, value_type = Option<String>, format = DateTime))]
    pub started_at: Option<Timestamp>,
    /// When its run ended.
    #[cfg_attr(feature = "openapi", schema(required = true, value_type = Option<String>, format = DateTime))]
    pub finished_at: Option<Timestamp>,
    /// Counts submit and replays, from 1.
    pub run: u32,
    /// The attempt that runs, or the number of attempts that were charged.
    pub attempt: u32,
    /// How many failed attempts may be followed by another.
    pub retries: u32,
    /// How failed attempts are spaced.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub backoff: Backoff,
    /// How long the handler may run; `null` for the default, 30 minutes.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub timeout_seconds: Option<f64>,
    /// Raised by every grant; handlers can use it to fence off stale ones.
    pub epoch: u32,
    /// How often a worker died with it.
    pub losses: u32,
    /// Who runs it, or ran it last.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub worker: Option<String>,
    /// What the handler gets: any JSON, byte for byte as it was submitted.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub payload: Box<RawValue>,
    /// What the handler returned: any JSON.
    #[cfg_attr(feature = "openapi", schema(required = true, value_type = Option<serde_json::Value>))]
    pub result: Option<Box<RawValue>>,
    /// Why the last attempt failed.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub error: Option<TaskError>,
    /// How far it is, where its handler says.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub progress: Option<ProgressView>,
    /// Searchable marks.
    pub labels: BTreeMap<String, String>,
    /// Tasks that must end before this one starts: ids of those that must succeed, or `{taskId, on}`.
    pub dependencies: Vec<DependencyView>,
    /// The workflow it belongs to.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub workflow_id: Option<String>,
    /// Its key in the workflow.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub workflow_key: Option<String>,
    /// Whether its payload holds expressions, which are replaced when a worker gets the task.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub render: bool,
    /// Always `null`; `schedule` has the schedule by its name.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub schedule_id: Option<String>,
    /// The schedule and the slot that started it.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub schedule: Option<ScheduleSlot>,
    /// What its owner should know, although the task was taken.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub warnings: Vec<Warning>,
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskError {
    /// Stable, upper-case reason for programs.
    #[cfg_attr(feature = "openapi", schema(example = "TIMEOUT"))]
    pub code: String,
    /// For people.
    #[cfg_attr(feature = "openapi", schema(example = "the handler ran for more than 30 s"))]
    pub message: String,
}

/// Something that will surprise the owner of a task that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Warning {
    /// Stable, upper-case reason for programs.
    #[cfg_attr(feature = "openapi", schema(example = "NO_WORKER_FOR_TYPE"))]
    pub code: String,
    /// For people.
    #[cfg_attr(feature = "openapi", schema(example = "no live worker has a handler for `email`"))]
    pub detail: String,
}

/// One page of tasks, newest first due time first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskPage {
    /// The tasks.
    pub items: Vec<TaskView>,
    /// Give it as `cursor` to get the next page; `null` on the last one.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub next_cursor: Option<String>,
    /// How many tasks were looked at to fill the page.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true, maximum = 10_000))]
    pub scanned: u32,
    /// Whether the page ended because it had looked at 10,000 tasks, not because it was full or
    /// nothing was left: go on with `nextCursor`, or narrow the filter.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub partial: bool,
}

impl From<Failure> for TaskError {
    fn from(Failure { code, message }: Failure) -> Self {
        Self { code, message }
    }
}

impl From<Task> for TaskView {
    fn from(task: Task) -> Self {
        let links = task.links.as_deref();
        let membership = links.and_then(|links| links.workflow.as_ref());
        let dependencies = links.map_or(&[][..], |links| &links.dependencies);
        Self {
            dependencies: dependencies.iter().copied().map(DependencyView::from).collect(),
            workflow_id: membership.map(|it| it.id.to_string()),
            workflow_key: membership.map(|it| it.key.clone()),
            render: links.is_some_and(|links| links.render),
            task_id: task.id,
            attempt: task.attempt(),
            r#type: task.lane.task_type.into(),
            queue: task.lane.queue.into(),
            status: task.status,
            priority: task.priority.level(),
            run_at: task.run_at,
            created_at: task.created_at,
            leased_at: task.granted_at,
            started_at: task.started_at,
            finished_at: task.finished_at,
            run: task.run,
            retries: task.retries,
            backoff: task.back_off.into(),
            timeout_seconds: task.timeout.map(|timeout| timeout.as_secs_f64()),
            epoch: task.epoch,
            losses: task.losses,
            worker: task.worker,
            payload: verbatim(&task.payload),
            result: task.result.as_deref().map(verbatim),
            error: task.error.map(TaskError::from),
            progress: task.progress.map(ProgressView::from),
            schedule: ScheduleSlot::of(&task.labels),
            labels: task.labels,
            schedule_id: None,
            warnings: Vec::new(),
        }
    }
}

/// Stored JSON text as it is. Text that is damaged shows as a JSON string, so that one bad row
/// neither hides itself nor breaks the page it is on.
pub(super) fn verbatim(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_else(|_| {
        serde_json::value::to_raw_value(text).expect("a string can always be written as JSON")
    })
}

#[cfg(feature = "openapi")]
pub(crate) fn status_schema() -> utoipa::openapi::schema::Object {
    use utoipa::openapi::schema::{ObjectBuilder, Type};
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("Where the task is in its life."))
        .enum_values(Some(Status::ALL.map(Status::as_str)))
        .build()
}

#[cfg(feature = "openapi")]
fn task_example() -> serde_json::Value {
    serde_json::json!({
        "taskId": "01920000-0000-7000-8000-000000000000",
        "type": "email", "queue": "default", "status": "SUCCESS", "priority": 5,
        "runAt": "2030-01-31T08:01:00.000Z", "createdAt": "2030-01-31T08:00:00.000Z",
        "startedAt": "2030-01-31T08:01:00.003Z", "finishedAt": "2030-01-31T08:01:00.120Z",
        "run": 1, "attempt": 1, "retries": 3,
        "backoff": {
            "strategy": "exponential", "baseSeconds": 1.0, "factor": 2.0, "capSeconds": 3600.0,
            "jitter": "full"
        },
        "timeoutSeconds": 30.0, "epoch": 1, "losses": 0, "worker": "laptop-4711",
        "payload": {"to": "ada@example.com"}, "result": {"messageId": "m-1"}, "error": null,
        "progress": null, "labels": {"customer": "42"}, "dependencies": [], "workflowId": null, "workflowKey": null, "render": false,
        "scheduleId": null, "schedule": null, "warnings": []
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_passes_through_byte_for_byte() {
        let text = r#"{"b": 123456789012345678901234567890, "a":1.0e2}"#;
        assert_eq!(verbatim(text).get(), text);
    }

    #[test]
    fn damaged_json_shows_as_a_string() {
        assert_eq!(verbatim("{oops").get(), r#""{oops""#);
    }
}
