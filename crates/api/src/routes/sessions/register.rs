//! `POST /sessions`

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use duly_client::wire::{Problem, RegisterRequest, Registration};
use duly_core::limits::BODY_BYTES;

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::{body, session_fields};

/// Open a worker's session
///
/// A session is one run of one worker process: it claims leases under its id, beats every
/// `heartbeatSeconds`, and is taken for dead after `ttlSeconds` of silence.
#[utoipa::path(
    post, path = "/sessions", operation_id = "register_worker", tag = "workers",
    extensions(("x-duly-access" = json!(Access::Worker))),
    request_body(content = RegisterRequest),
    responses(
        (status = 201, description = "The session is open", body = Registration),
        (status = 429, description = "`TOO_MANY_SESSIONS`; see `Retry-After`", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn register_worker(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<(StatusCode, Json<Registration>), ApiError> {
    let body = body::read_json(&app, request, BODY_BYTES).await?;
    let mut worker = session_fields::worker(&body.bytes, &caller.tenant)?;
    caller.narrow(&mut worker)?;
    worker.owner = caller.owner();
    let registered = app.engine.register(worker).await?;
    let registration = Registration {
        session_id: registered.session,
        ttl_seconds: registered.ttl.as_secs_f64(),
        heartbeat_seconds: registered.heartbeat.as_secs_f64(),
    };
    Ok((StatusCode::CREATED, Json(registration)))
}
