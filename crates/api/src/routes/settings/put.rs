//! `PUT /settings`

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use duly_client::wire::{SettingsAnswer, SettingsRequest};
use duly_core::limits::BODY_BYTES;

use super::answer;
use crate::access::Access;
use crate::app::App;
use crate::error::ApiError;
use crate::responses::{IfMatchRequired, VersionMismatch};
use crate::{body, if_match, settings_fields};

/// Change the settings
///
/// Replaces all of them, at once and without a restart. What is absent has its default, not the
/// value of before. `If-Match` names the version that the change is based on, so that it
/// undoes no change made in between.
#[utoipa::path(
    put, path = "/settings", operation_id = "put_settings", tag = "settings",
    extensions(("x-duly-access" = json!(Access::InstallationAdmin))),
    params(("If-Match" = String, Header, example = "*",
        description = "The version that was read, quoted; `*` for any")),
    request_body(content = SettingsRequest),
    responses(
        (status = 200, description = "The settings, changed", body = SettingsAnswer, headers(
            ("ETag" = String, description = "The new version, quoted"))),
        VersionMismatch,
        IfMatchRequired,
    ),
)]
pub(crate) async fn put_settings(
    State(app): State<App>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_json(&app, request, BODY_BYTES).await?;
    let expected = if_match::read(&headers)?;
    let change = settings_fields::change(&body.bytes)?;
    let made = app.engine.put_settings(expected, change).await?;
    Ok(answer(&app, made))
}
