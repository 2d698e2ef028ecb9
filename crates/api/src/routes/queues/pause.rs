//! `POST /queues/{queue}/pause` and `/resume`

use axum::Json;
use axum::extract::{Request, State};
use duly_client::wire::{PauseRequest, Problem, QueueView};
use duly_core::limits::PAUSED_QUEUES;
use duly_core::ports::store::PauseQueue;

use super::{absent, queue_name, view};
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::responses::{QueueNotFound, SystemQueue, UnexpectedFields};
use crate::routes::PathId;
use crate::{body, fields, order_fields};

/// Pause a queue
///
/// Nothing of it starts any more, also after a restart and also before its first task; what was
/// handed to a worker goes on. Pausing a paused queue changes the note. Queues of the system, whose
/// tasks carry out bulk actions, cannot be paused.
#[utoipa::path(
    post, path = "/queues/{queue}/pause", operation_id = "pause_queue", tag = "queues",
    extensions(("x-duly-access" = json!(Access::Operator))),
    params(("queue" = String, Path, description = "The queue's name")),
    request_body(content = Option<PauseRequest>, description = "May be left out"),
    responses(
        (status = 200, description = "The queue, paused", body = QueueView),
        (status = 404, description = "`QUEUE_NOT_FOUND`: this can be no name", body = Problem,
            content_type = "application/problem+json"),
        SystemQueue,
        (status = 413, description = "`BODY_TOO_LARGE`; `TOO_LARGE`: too many queues without tasks \
            are paused", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn pause_queue(
    State(app): State<App>,
    caller: Caller,
    queue: PathId,
    request: Request,
) -> Result<Json<QueueView>, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    let note = order_fields::note(&body.bytes)?;
    let (tenant, queue) = (caller.tenant.clone(), queue_name(queue)?);
    if queue.is_reserved() {
        return Err(ApiError::new(
            Code::SystemQueue,
            "bulk actions would wait; abort those instead",
        ));
    }
    let order = PauseQueue { tenant: tenant.clone(), queue, note };
    let state = app.acting(&caller).pause_queue(order).await?.ok_or_else(too_many)?;
    Ok(Json(view(&app, &tenant, state)))
}

fn too_many() -> ApiError {
    let detail = format!("{PAUSED_QUEUES} queues are paused; resume those that are not used");
    ApiError::new(Code::TooLarge, detail)
}

/// Resume a queue
///
/// What waits in it starts again. Resuming a queue that is not paused changes nothing.
#[utoipa::path(
    post, path = "/queues/{queue}/resume", operation_id = "resume_queue", tag = "queues",
    extensions(("x-duly-access" = json!(Access::Operator))),
    params(("queue" = String, Path, description = "The queue's name")),
    responses(
        (status = 200, description = "The queue, going on", body = QueueView),
        QueueNotFound,
        UnexpectedFields,
    ),
)]
pub(crate) async fn resume_queue(
    State(app): State<App>,
    caller: Caller,
    queue: PathId,
    request: Request,
) -> Result<Json<QueueView>, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    fields::expect_no_fields(&body.bytes)?;
    let (tenant, queue) = (caller.tenant.clone(), queue_name(queue)?);
    let state = app.acting(&caller).resume_queue(&tenant, &queue).await?;
    Ok(Json(view(&app, &tenant, state.ok_or_else(absent)?)))
}
