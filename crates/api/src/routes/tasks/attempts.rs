//! `GET /tasks/{id}/attempts`

use axum::Json;
use axum::extract::State;
use duly_client::wire::{AttemptPage, AttemptView};

use super::get::{absent, task_id};
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::{AmbiguousId, TaskNotFound};
use crate::routes::PathId;

/// List the attempts of a task
///
/// Those that have ended, oldest first, over all runs: they succeeded, failed, or were lost with their
/// worker.
#[utoipa::path(
    get, path = "/tasks/{id}/attempts", operation_id = "list_attempts", tag = "tasks",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(("id" = String, Path, description = "The task's id, or its first 13 \
        or more characters if they are those of one task only")),
    responses(
        (status = 200, description = "The attempts, perhaps none", body = AttemptPage),
        TaskNotFound,
        AmbiguousId,
    ),
)]
pub(crate) async fn list_attempts(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
) -> Result<Json<AttemptPage>, ApiError> {
    let tenant = &caller.tenant;
    let attempts = app.engine.attempts(tenant, task_id(&app, tenant, id).await?).await?;
    let items = attempts.ok_or_else(absent)?.into_iter().map(AttemptView::from).collect();
    Ok(Json(AttemptPage { items, next_cursor: None }))
}
