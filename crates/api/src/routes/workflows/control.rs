//! `POST /workflows/{id}/cancel` and `/retry`

use axum::Json;
use axum::extract::{Request, State};
use duly_client::wire::{CancelRequest, Problem, WorkflowView};

use super::get::view;
use super::workflow_id;
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::{UnexpectedFields, WorkflowNotFound};
use crate::routes::PathId;
use crate::{body, fields, order_fields};

/// Cancel a workflow
///
/// After the answer none of its blocked tasks starts any more. Those that wait or run are cancelled
/// soon after, as with `POST /tasks/{id}/cancel`. Cancelling a cancelled workflow changes nothing.
#[utoipa::path(
    post, path = "/workflows/{id}/cancel", operation_id = "cancel_workflow", tag = "workflows",
    extensions(("x-duly-access" = json!(Access::Submitter))),
    params(("id" = String, Path, description = "The workflow's id")),
    request_body(content = Option<CancelRequest>, description = "May be left out"),
    responses(
        (status = 200, description = "The workflow", body = WorkflowView),
        WorkflowNotFound,
        (status = 409, description = "`WORKFLOW_ENDED`", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn cancel_workflow(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
    request: Request,
) -> Result<Json<WorkflowView>, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    let reason = order_fields::reason(&body.bytes)?;
    let cancelled = app.engine.cancel_workflow(&caller.tenant, workflow_id(id)?, reason).await?;
    Ok(Json(view(cancelled)))
}

/// Retry a workflow
///
/// Runs its failed tasks again. Tasks that were cancelled because of them wait for them again.
#[utoipa::path(
    post, path = "/workflows/{id}/retry", operation_id = "retry_workflow", tag = "workflows",
    extensions(("x-duly-access" = json!(Access::Operator))),
    params(("id" = String, Path, description = "The workflow's id")),
    responses(
        (status = 200, description = "The workflow", body = WorkflowView),
        WorkflowNotFound,
        (status = 409, description = "`WORKFLOW_ENDED`: it was cancelled", body = Problem,
            content_type = "application/problem+json"),
        UnexpectedFields,
    ),
)]
pub(crate) async fn retry_workflow(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
    request: Request,
) -> Result<Json<WorkflowView>, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    fields::expect_no_fields(&body.bytes)?;
    let retried = app.engine.retry_workflow(&caller.tenant, workflow_id(id)?).await?;
    Ok(Json(view(retried)))
}
