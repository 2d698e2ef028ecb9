//! `/auth`: sign-in. One file per noun.

pub(crate) mod session;
pub(crate) mod token;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::auth::Authenticator;
use crate::error::{ApiError, Code};

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(token::exchange_key))
        .routes(routes!(session::begin_session, session::finish_session))
}

fn authenticator(app: &App) -> Result<&Arc<Authenticator>, ApiError> {
    app.config.auth.as_ref().ok_or_else(no_signing_key)
}

fn no_signing_key() -> ApiError {
    let detail =
        "this server has no key to sign tokens with; docs/security.md shows how to add one";
    ApiError::new(Code::NoSigningKey, detail)
}
