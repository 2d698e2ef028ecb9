//! `GET /tasks/{id}/attempts`

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use duly_client::wire::{AttemptPage, AttemptView, Problem};

use super::get::{absent, task_id};
use crate::app::App;
use crate::error::ApiError;
use crate::query;
use crate::routes::PathId;

/// List the attempts of a task that went wrong
///
/// Those that failed and those that were lost with their worker, oldest first, over all runs. An
/// attempt that succeeded is the task's result.
#[utoipa::path(
    get, path = "/tasks/{id}/attempts", operation_id = "list_attempts", tag = "tasks",
    params(("id" = String, Path, description = "The task's id",
        example = "01920000-0000-7000-8000-000000000000")),
    responses(
        (status = 200, description = "The attempts, perhaps none", body = AttemptPage),
        (status = 400, description = "`INVALID_PARAMETER`", body = Problem,
            content_type = "application/problem+json"),
        (status = 404, description = "`TASK_NOT_FOUND`", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list_attempts(
    State(app): State<App>,
    id: PathId,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Json<AttemptPage>, ApiError> {
    let [] = query::read(&uri, [])?;
    let attempts = app.engine.attempts(&app.tenant_of(&headers)?, task_id(id)?).await?;
    let items = attempts.ok_or_else(absent)?.into_iter().map(AttemptView::from).collect();
    Ok(Json(AttemptPage { items, next_cursor: None }))
}
