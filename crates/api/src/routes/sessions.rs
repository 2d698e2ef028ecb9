//! `/sessions`: remote workers say who they are and that they live. One file per verb.

pub(crate) mod heartbeat;
pub(crate) mod leave;
pub(crate) mod register;

use axum::extract::Path;
use duly_core::id::SessionId;
use duly_engine::command::worker::Error;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::PathId;
use crate::app::App;
use crate::error::ApiError;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(register::register_worker))
        .routes(routes!(leave::end_session))
        .routes(routes!(heartbeat::beat_session))
}

/// An id that cannot be one answers like one that is not there: there is nothing to tell.
fn session_id(id: PathId) -> Result<SessionId, ApiError> {
    id.ok().and_then(|Path(id)| id.parse().ok()).ok_or_else(|| Error::UnknownSession.into())
}
