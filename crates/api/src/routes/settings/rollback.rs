//! `POST /settings/rollback`

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use duly_client::wire::{Problem, RollbackRequest, SettingsAnswer};
use duly_core::limits::BODY_BYTES;

use super::answer;
use crate::access::Access;
use crate::app::App;
use crate::error::ApiError;
use crate::responses::{IfMatchRequired, VersionMismatch};
use crate::{body, if_match, settings_fields};

/// Go back to older settings
///
/// Makes a new version with the content of an old one that is kept; 0 stands for the defaults.
#[utoipa::path(
    post, path = "/settings/rollback", operation_id = "roll_back_settings", tag = "settings",
    extensions(("x-duly-access" = json!(Access::InstallationAdmin))),
    params(("If-Match" = String, Header, example = "*",
        description = "The version that was read, quoted; `*` for any")),
    request_body(content = RollbackRequest),
    responses(
        (status = 200, description = "The settings, changed", body = SettingsAnswer, headers(
            ("ETag" = String, description = "The new version, quoted"))),
        (status = 404, description = "`VERSION_NOT_FOUND`", body = Problem,
            content_type = "application/problem+json"),
        VersionMismatch,
        IfMatchRequired,
    ),
)]
pub(crate) async fn roll_back_settings(
    State(app): State<App>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_json(&app, request, BODY_BYTES).await?;
    let expected = if_match::read(&headers)?;
    let (version, comment) = settings_fields::rollback(&body.bytes)?;
    let comment = comment.unwrap_or_else(|| format!("as in version {version}"));
    let made = app.engine.roll_back_settings(expected, version, Some(comment)).await?;
    Ok(answer(&app, made))
}
