//! `GET /tasks/{id}/attempts`

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use duly_client::wire::{AttemptPage, AttemptView, Problem};

use super::get::{absent, task_id};
use crate::app::App;
use crate::error::ApiError;
use crate::routes::PathId;

/// List the attempts of a task
///
/// Those that have ended, oldest first, over all runs: they succeeded, failed, or were lost with their
/// worker.
#[utoipa::path(
    get, path = "/tasks/{id}/attempts", operation_id = "list_attempts", tag = "tasks",
    params(("id" = String, Path, description = "The task's id, or its first 13 \
        or more characters if they are those of one task only")),
    responses(
        (status = 200, description = "The attempts, perhaps none", body = AttemptPage),
        (status = 404, description = "`TASK_NOT_FOUND`", body = Problem,
            content_type = "application/problem+json"),
        (status = 409, description = "`AMBIGUOUS_ID`", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list_attempts(
    State(app): State<App>,
    id: PathId,
    headers: HeaderMap,
) -> Result<Json<AttemptPage>, ApiError> {
    let tenant = &app.tenant_of(&headers)?;
    let attempts = app.engine.attempts(tenant, task_id(&app, tenant, id).await?).await?;
    let items = attempts.ok_or_else(absent)?.into_iter().map(AttemptView::from).collect();
    Ok(Json(AttemptPage { items, next_cursor: None }))
}
