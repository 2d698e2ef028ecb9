//! `GET /tasks/{id}`

use std::time::Duration;

use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use duly_client::wire::TaskView;
use duly_core::duration;
use duly_core::id::TaskId;
use duly_core::limits::WAIT;
use duly_core::name::TenantName;

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::query;
use crate::redacted::task_view;
use crate::responses::{AmbiguousId, TaskNotFound};
use crate::routes::{PathId, resolve_id};

/// Read a task
///
/// With `wait` the answer comes as soon as the run has ended, or after that time with the task as
/// it is then.
#[utoipa::path(
    get, path = "/tasks/{id}", operation_id = "get_task", tag = "tasks",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(
        ("id" = String, Path, description = "The task's id, or its first 13 or more \
            characters if they are those of one task only"),
        ("wait" = Option<String>, Query, example = "30s",
            description = "How long to wait for the outcome, at most 60 s: `30s` or `PT30S`"),
    ),
    responses(
        (status = 200, description = "The task", body = TaskView),
        TaskNotFound,
        AmbiguousId,
    ),
)]
pub(crate) async fn get_task(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
    uri: Uri,
) -> Result<Response, ApiError> {
    let [wait] = query::read(&uri, ["wait"])?;
    let wait = wait.map(|text| patience(&text)).transpose()?;
    let tenant = &caller.tenant;
    let id = task_id(&app, tenant, id).await?;
    let task = match wait {
        None => app.engine.get(tenant, id).await?,
        Some(wait) => app.engine.wait(tenant, id, wait).await?,
    };
    Ok(axum::Json(task_view(&app, task.ok_or_else(absent)?).await?).into_response())
}

pub(crate) fn patience(text: &str) -> Result<Duration, ApiError> {
    duration::parse(text).filter(|wait| *wait <= WAIT).ok_or_else(|| {
        let most = WAIT.as_secs();
        query::invalid(format!("`wait` must be a time such as 30s or PT30S, at most {most}s"))
    })
}

/// The task that an id in a path names, perhaps by its beginning.
pub(super) async fn task_id(
    app: &App,
    tenant: &TenantName,
    id: PathId,
) -> Result<TaskId, ApiError> {
    resolve_id(app, tenant, id, None, absent).await
}

/// Answers alike for a task that does not exist and for another tenant's.
pub(super) fn absent() -> ApiError {
    ApiError::new(Code::TaskNotFound, "there is no task with this id")
}
