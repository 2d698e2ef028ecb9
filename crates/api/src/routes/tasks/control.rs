//! `POST /tasks/{id}/cancel`, `/replay` and `/retry`, and `PATCH /tasks/{id}`

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use duly_client::wire::{CancelRequest, EditRequest, Problem, ReplayRequest, TaskView};
use duly_core::limits::BODY_BYTES;
use duly_core::task::Task;
use duly_engine::command::control::Error;
use duly_engine::command::submit;

use super::get::{absent, task_id};
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::redacted::task_view;
use crate::responses::{PayloadTooLarge, TaskNotFound};
use crate::routes::PathId;
use crate::{body, fields, order_fields, task_fields};

/// Cancel a task
///
/// Ends a task that waits or runs. The handler of one that runs is told, and its outcome is
/// refused. Cancelling a cancelled task changes nothing.
#[utoipa::path(
    post, path = "/tasks/{id}/cancel", operation_id = "cancel_task", tag = "tasks",
    extensions(("x-duly-access" = json!(Access::Submitter))),
    params(("id" = String, Path, description = "The task's id, or its first 13 \
        or more characters if they are those of one task only")),
    request_body(content = Option<CancelRequest>, description = "May be left out"),
    responses(
        (status = 200, description = "The task, cancelled", body = TaskView),
        TaskNotFound,
        (status = 409, description = "`AMBIGUOUS_ID`; `STATE_CONFLICT`: it has ended", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn cancel_task(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    let reason = order_fields::reason(&body.bytes)?;
    let tenant = &caller.tenant;
    let cancelled =
        app.acting(&caller).cancel(tenant, task_id(&app, tenant, id).await?, reason).await;
    answer(&app, cancelled, "only a task that waits or runs can be cancelled").await
}

/// Run a task again
///
/// Opens the next run of a task that has ended: the same id, fresh retries, due now, perhaps with
/// another payload. With `downstream`, all that depends on it waits for it and runs again too.
#[utoipa::path(
    post, path = "/tasks/{id}/replay", operation_id = "replay_task", tag = "tasks",
    extensions(("x-duly-access" = json!(Access::Operator))),
    params(("id" = String, Path, description = "The task's id, or its first 13 \
        or more characters if they are those of one task only")),
    request_body(content = Option<ReplayRequest>, description = "May be left out"),
    responses(
        (status = 200, description = "The task, waiting for its next run", body = TaskView),
        TaskNotFound,
        (status = 409, description = "`AMBIGUOUS_ID`; `STATE_CONFLICT`: it, or with \
            `downstream` a task that depends on it, has not ended", body = Problem,
            content_type = "application/problem+json"),
        PayloadTooLarge,
    ),
)]
pub(crate) async fn replay_task(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    let (payload, is_downstream) = order_fields::replay(&body.bytes)?;
    let tenant = &caller.tenant;
    let id = task_id(&app, tenant, id).await?;
    let replayed = if is_downstream {
        app.acting(&caller).replay_downstream(tenant, id).await
    } else {
        app.acting(&caller).replay(tenant, id, payload.map(Arc::from)).await
    };
    answer(&app, replayed, "only a task that has ended can be replayed").await
}

/// Change a task
///
/// Changes a task that waits, for its time, a worker or its next attempt. What is absent stays;
/// the id stays too, also when the time moves. Type, queue and back-off cannot be changed.
#[utoipa::path(
    patch, path = "/tasks/{id}", operation_id = "edit_task", tag = "tasks",
    extensions(("x-duly-access" = json!(Access::Operator))),
    params(("id" = String, Path, description = "The task's id, or its first 13 \
        or more characters if they are those of one task only")),
    request_body(content = EditRequest),
    responses(
        (status = 200, description = "The task, changed", body = TaskView),
        TaskNotFound,
        (status = 409, description = "`AMBIGUOUS_ID`; `STATE_CONFLICT`: it does not wait", body = Problem,
            content_type = "application/problem+json"),
        PayloadTooLarge,
        (status = 422, description = "`INVALID_FIELDS`, `UNSUPPORTED_FIELD`", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn edit_task(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_json(&app, request, BODY_BYTES).await?;
    let change = task_fields::read_change(&body.bytes)?;
    let tenant = &caller.tenant;
    let edited = app.acting(&caller).edit(tenant, task_id(&app, tenant, id).await?, change).await;
    answer(&app, edited, "only a task that waits can be changed").await
}

/// Retry a task now
///
/// Ends the back-off of a task that waits for its next attempt.
#[utoipa::path(
    post, path = "/tasks/{id}/retry", operation_id = "retry_task", tag = "tasks",
    extensions(("x-duly-access" = json!(Access::Operator))),
    params(("id" = String, Path, description = "The task's id, or its first 13 \
        or more characters if they are those of one task only")),
    responses(
        (status = 200, description = "The task, due now", body = TaskView),
        TaskNotFound,
        (status = 409, description = "`AMBIGUOUS_ID`; `STATE_CONFLICT`: it does not wait for a retry",
            body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn retry_task(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    fields::expect_no_fields(&body.bytes)?;
    let tenant = &caller.tenant;
    let retried = app.acting(&caller).retry(tenant, task_id(&app, tenant, id).await?).await;
    answer(&app, retried, "only a task that waits for its next attempt can be retried").await
}

async fn answer(app: &App, outcome: Result<Task, Error>, rule: &str) -> Result<Response, ApiError> {
    match outcome {
        Ok(task) => Ok(axum::Json(task_view(app, task).await?).into_response()),
        Err(error) => Err(refusal(error, rule)),
    }
}

/// Why an order for one task was not carried out; `rule` says for which it can be.
pub(super) fn refusal(error: Error, rule: &str) -> ApiError {
    match error {
        Error::NotFound => absent(),
        Error::Conflict { status } => {
            ApiError::new(Code::StateConflict, format!("the task is {status}; {rule}"))
        }
        Error::Reserved => {
            let detail = "a task of the system's own cannot be changed; see /bulk-actions";
            ApiError::new(Code::StateConflict, detail)
        }
        Error::OpenChildren => ApiError::new(
            Code::OpenChildren,
            "tasks that depend on it have not ended; wait for them or cancel them first",
        ),
        Error::OpenDescendant { .. } => ApiError::new(
            Code::StateConflict,
            format!("{error}; only tasks that have ended run again"),
        ),
        Error::TooFarAhead => submit::Refused::TooFarAhead.into(),
        Error::Payload(bad) => submit::Refused::Payload(bad).into(),
        Error::Store(error) => error.into(),
    }
}
