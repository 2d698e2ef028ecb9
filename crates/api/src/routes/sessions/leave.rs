//! `DELETE /sessions/{id}`

use axum::extract::State;
use axum::http::StatusCode;
use duly_client::wire::Problem;

use super::session_id;
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::routes::PathId;

/// End a worker's session
///
/// What it still holds goes back to its queue, uncharged. Ending a session twice is the same as
/// once.
#[utoipa::path(
    delete, path = "/sessions/{id}", operation_id = "end_session", tag = "workers",
    extensions(("x-duly-access" = json!(Access::Worker))),
    params(("id" = String, Path, description = "The session's id")),
    responses(
        (status = 204, description = "The session has ended"),
        (status = 404, description = "`SESSION_NOT_FOUND`: this can be no session", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn end_session(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
) -> Result<StatusCode, ApiError> {
    let session = session_id(id)?;
    caller.check_session(session)?;
    app.engine.leave(&caller.tenant, session).await?;
    Ok(StatusCode::NO_CONTENT)
}
