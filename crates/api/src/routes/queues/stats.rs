//! `GET /queues/{queue}/stats`

use axum::Json;
use axum::extract::State;
use duly_client::wire::QueueView;

use super::{absent, queue_name, view};
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::QueueNotFound;
use crate::routes::PathId;

/// Look at a queue
///
/// What waits, runs and failed in it, and how fast tasks come and start.
#[utoipa::path(
    get, path = "/queues/{queue}/stats", operation_id = "queue_stats", tag = "queues",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(("queue" = String, Path, description = "The queue's name")),
    responses(
        (status = 200, description = "The queue", body = QueueView),
        QueueNotFound,
    ),
)]
pub(crate) async fn queue_stats(
    State(app): State<App>,
    caller: Caller,
    queue: PathId,
) -> Result<Json<QueueView>, ApiError> {
    let tenant = caller.tenant;
    let state = app.engine.queue(&tenant, &queue_name(queue)?).await?;
    Ok(Json(view(&app, &tenant, state.ok_or_else(absent)?)))
}
