//! `POST /sessions/{id}/heartbeat`

use axum::Json;
use axum::extract::{Request, State};
use duly_client::wire::{HeartbeatAnswer, HeartbeatRequest};

use super::session_id;
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::SessionEnded;
use crate::routes::PathId;
use crate::{body, session_fields};

/// Say that a worker lives
///
/// One beat stands for all leases of the session. The answer says which of them are gone; with
/// `waitSeconds` it comes as soon as one is.
#[utoipa::path(
    post, path = "/sessions/{id}/heartbeat", operation_id = "beat_session", tag = "workers",
    extensions(("x-duly-access" = json!(Access::Worker))),
    params(("id" = String, Path, description = "The session's id")),
    request_body(content = HeartbeatRequest, description = "At most 10,000 of each; may be left \
        out by a worker that holds nothing"),
    responses(
        (status = 200, description = "The news", body = HeartbeatAnswer),
        SessionEnded,
    ),
)]
pub(crate) async fn beat_session(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
    request: Request,
) -> Result<Json<HeartbeatAnswer>, ApiError> {
    let session = session_id(id)?;
    caller.check_session(session)?;
    let body = body::read_optional_json(&app, request).await?;
    let (beat, patience) = session_fields::beat(&body.bytes, session)?;
    // The answer may wait for a minute; the body need not.
    drop(body);
    let news = app.engine.heartbeat(&caller.tenant, beat, patience).await?;
    Ok(Json(HeartbeatAnswer::new(&news.taken_back, news.drain)))
}
