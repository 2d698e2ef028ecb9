//! `DELETE /tasks/{id}`

use axum::extract::State;
use axum::http::StatusCode;
use duly_client::wire::Problem;

use super::control::refusal;
use super::get::task_id;
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::TaskNotFound;
use crate::routes::PathId;

/// Delete a task
///
/// Forgets a task that has ended, with its attempts, logs, result and idempotency key. One that waits
/// or runs must be cancelled first.
#[utoipa::path(
    delete, path = "/tasks/{id}", operation_id = "delete_task", tag = "tasks",
    extensions(("x-duly-access" = json!(Access::Operator))),
    params(("id" = String, Path, description = "The task's id, or its first 13 or more characters \
        if they are those of one task only")),
    responses(
        (status = 204, description = "The task is gone"),
        TaskNotFound,
        (status = 409, description = "`AMBIGUOUS_ID`; `STATE_CONFLICT`: it has not ended, or is \
            one of the system's own; `OPEN_CHILDREN`: tasks that depend on it have not ended", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn delete_task(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
) -> Result<StatusCode, ApiError> {
    let tenant = &caller.tenant;
    let deleted = app.acting(&caller).delete(tenant, task_id(&app, tenant, id).await?).await;
    let rule = "only a task that has ended can be deleted; cancel it first";
    deleted.map_err(|error| refusal(error, rule))?;
    Ok(StatusCode::NO_CONTENT)
}
