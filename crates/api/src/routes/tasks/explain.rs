//! `GET /tasks/{id}/explain`

use axum::Json;
use axum::extract::State;
use duly_client::wire::{ExplainView, OpenParent, ReasonCode, ReasonView, ScheduleSlot};
use duly_core::name::Lane;
use duly_core::ports::store::{Counted, Parent, Pause};
use duly_core::state::Status;
use duly_core::task::Task;
use duly_engine::command::explain::{Explanation, Reason};

use super::get::{absent, task_id};
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::{AmbiguousId, TaskNotFound};
use crate::routes::PathId;

/// Tell why a task does not run
///
/// All that stands between it and its next start, the most decisive first, and what to do about it.
#[utoipa::path(
    get, path = "/tasks/{id}/explain", operation_id = "explain_task", tag = "tasks",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(("id" = String, Path, description = "The task's id, or its first 13 \
        or more characters if they are those of one task only")),
    responses(
        (status = 200, description = "The reasons", body = ExplainView),
        TaskNotFound,
        AmbiguousId,
    ),
)]
pub(crate) async fn explain_task(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
) -> Result<Json<ExplainView>, ApiError> {
    let tenant = &caller.tenant;
    let found = app.engine.explain(tenant, task_id(&app, tenant, id).await?).await?;
    let Explanation { task, reasons } = found.ok_or_else(absent)?;
    let next = reasons.iter().filter_map(|reason| next(&task, reason)).collect();
    let reasons = reasons.into_iter().map(|reason| view(&task, reason)).collect();
    let schedule = ScheduleSlot::of(&task.labels);
    Ok(Json(ExplainView { task_id: task.id, status: task.status, reasons, next, schedule }))
}

fn view(task: &Task, reason: Reason) -> ReasonView {
    let detail = words(task, &reason);
    let plain = |code| ReasonView {
        code,
        detail,
        until: None,
        paused: None,
        ahead: None,
        parents: Vec::new(),
    };
    match reason {
        Reason::Blocked { parents, .. } => {
            let parents = parents.into_iter().map(open_parent).collect();
            ReasonView { parents, ..plain(ReasonCode::Blocked) }
        }
        Reason::NotDue { until } => ReasonView { until: Some(until), ..plain(ReasonCode::NotDue) },
        Reason::WaitingForRetry { until } => {
            ReasonView { until: Some(until), ..plain(ReasonCode::WaitingForRetry) }
        }
        Reason::QueuePaused(pause) => {
            ReasonView { paused: Some(pause.into()), ..plain(ReasonCode::QueuePaused) }
        }
        Reason::NoWorker | Reason::WorkersDrain { .. } => plain(ReasonCode::NoWorker),
        Reason::Quarantined => plain(ReasonCode::Quarantined),
        Reason::BehindOthers(ahead) => {
            ReasonView { ahead: Some(ahead.into()), ..plain(ReasonCode::BehindOthers) }
        }
        Reason::Next { .. } => plain(ReasonCode::Next),
        Reason::Running => plain(ReasonCode::Running),
        Reason::Ended => plain(ReasonCode::Ended),
    }
}

fn open_parent(parent: Parent) -> OpenParent {
    let Parent { task: task_id, key, on, status, .. } = parent;
    OpenParent { task_id, key, on, status }
}

fn words(task: &Task, reason: &Reason) -> String {
    let (queue, task_type) = (&task.lane.queue, &task.lane.task_type);
    match reason {
        Reason::Blocked { parents, open } => {
            let name = |it: &Parent| it.key.clone().unwrap_or_else(|| it.task.to_string());
            let named: Vec<_> = parents.iter().take(3).map(name).collect();
            let rest = if *open > named.len() { ", …" } else { "" };
            format!("it waits for {open} tasks to end: {}{rest}", named.join(", "))
        }
        Reason::NotDue { until } => format!("it is not due until {until}"),
        Reason::WaitingForRetry { until } => format!(
            "attempt {} of {} failed; the next one waits until {until}",
            task.charged,
            task.retries + 1
        ),
        Reason::QueuePaused(Pause { since, note }) => {
            let why = if note.is_empty() { String::new() } else { format!(": {note}") };
            format!("the queue {queue} is paused since {since}{why}")
        }
        Reason::NoWorker => {
            format!("no live worker serves the type {task_type} in the queue {queue}")
        }
        Reason::WorkersDrain { workers } => format!(
            "all live workers that serve the type {task_type} in the queue {queue} drain: {workers}"
        ),
        Reason::Quarantined => format!(
            "its workers died {} times, so it waits for one that runs nothing else",
            task.losses
        ),
        Reason::BehindOthers(Counted { count, more }) => {
            let least = if *more { "at least" } else { "about" };
            format!("{least} {count} due tasks of the queue {queue} come before it")
        }
        Reason::Next { workers } => format!(
            "it is next; of {workers} live workers that serve it, one takes it as soon as it is free"
        ),
        Reason::Running => match &task.worker {
            Some(worker) => format!("it runs on the worker {worker}"),
            None => "it is about to run".to_owned(),
        },
        Reason::Ended => format!("it has ended: {}", task.status),
    }
}

/// How to get a worker for a task. `duly worker run` has handlers for the built-in types alone.
fn start_worker(lane: &Lane) -> String {
    match lane.task_type.as_str() {
        "echo" | "flaky" | "http" | "map" | "sleep" => "duly worker run".to_owned(),
        "shell" => "duly worker run --allow-shell".to_owned(),
        task_type => format!(
            "start a worker of yours that registers the type {task_type}; docs/worker-protocol.md \
             says how to write one"
        ),
    }
}

/// The command with which a person gets on.
fn next(task: &Task, reason: &Reason) -> Option<String> {
    let id = task.id;
    match reason {
        Reason::Blocked { parents, .. } => {
            parents.first().map(|parent| format!("duly task explain {}", parent.task))
        }
        Reason::NotDue { .. } => Some(format!("duly task edit {id} --delay 0s")),
        Reason::WaitingForRetry { .. } => Some(format!("duly task retry {id}")),
        Reason::QueuePaused(_) => Some(format!("duly queue resume {}", task.lane.queue)),
        Reason::NoWorker => Some(start_worker(&task.lane)),
        Reason::WorkersDrain { .. } => {
            Some("duly worker list, then duly worker drain ID --resume".to_owned())
        }
        Reason::BehindOthers(_) => Some(format!("duly task edit {id} --priority 9")),
        Reason::Quarantined => Some(format!("duly task attempts {id}")),
        Reason::Ended if task.status == Status::Success => None,
        Reason::Ended => Some(format!("duly task replay {id}")),
        Reason::Next { .. } | Reason::Running => Some(format!("duly task get {id} --wait")),
    }
}
