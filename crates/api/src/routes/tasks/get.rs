//! `GET /tasks/{id}`

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use duly_client::wire::{Problem, TaskView};
use duly_core::id::TaskId;
use duly_core::limits::WAIT;

use crate::app::App;
use crate::error::{ApiError, Code};
use crate::routes::PathId;
use crate::{duration, query};

/// Read a task
///
/// With `wait` the answer comes as soon as the run has ended, or after that time with the task as
/// it is then.
#[utoipa::path(
    get, path = "/tasks/{id}", operation_id = "get_task", tag = "tasks",
    params(
        ("id" = String, Path, description = "The task's id",
            example = "01920000-0000-7000-8000-000000000000"),
        ("wait" = Option<String>, Query, example = "30s",
            description = "How long to wait for the outcome, at most 60 s: `30s` or `PT30S`"),
    ),
    responses(
        (status = 200, description = "The task", body = TaskView),
        (status = 400, description = "`INVALID_PARAMETER`", body = Problem,
            content_type = "application/problem+json"),
        (status = 404, description = "`TASK_NOT_FOUND`", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn get_task(
    State(app): State<App>,
    id: PathId,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let [wait] = query::read(&uri, ["wait"])?;
    let wait = wait.map(|text| patience(&text)).transpose()?;
    let id = task_id(id)?;
    let tenant = &app.tenant_of(&headers)?;
    let task = match wait {
        None => app.engine.get(tenant, id).await?,
        Some(wait) => app.engine.wait(tenant, id, wait).await?,
    };
    let view = TaskView::from(task.ok_or_else(absent)?);
    Ok(axum::Json(view).into_response())
}

pub(crate) fn patience(text: &str) -> Result<Duration, ApiError> {
    duration::parse(text).filter(|wait| *wait <= WAIT).ok_or_else(|| {
        let most = WAIT.as_secs();
        query::invalid(format!("`wait` must be a time such as 30s or PT30S, at most {most}s"))
    })
}

/// An id that cannot be one answers like one that is not there: there is nothing to tell.
pub(super) fn task_id(id: PathId) -> Result<TaskId, ApiError> {
    id.ok().and_then(|Path(id)| id.parse().ok()).ok_or_else(absent)
}

/// Answers alike for a task that does not exist and for another tenant's.
pub(super) fn absent() -> ApiError {
    ApiError::new(Code::TaskNotFound, "there is no task with this id")
}
