//! `/settings`

pub(crate) mod history;
pub(crate) mod put;
pub(crate) mod rollback;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use duly_client::wire::{EffectiveSettings, SettingsAnswer, SettingsVersion};
use duly_core::ports::store::VersionedSettings;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Access;
use crate::app::App;
use crate::error::ApiError;
use crate::if_match;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_settings, put::put_settings))
        .routes(routes!(history::list_settings))
        .routes(routes!(rollback::roll_back_settings))
}

/// Read the settings
///
/// They hold for the whole installation. `effective` says what null means on this server.
#[utoipa::path(
    get, path = "/settings", operation_id = "get_settings", tag = "settings",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    responses(
        (status = 200, description = "The newest settings", body = SettingsAnswer, headers(
            ("ETag" = String, description = "The version, quoted, for `If-Match`"))),
    ),
)]
pub(crate) async fn get_settings(State(app): State<App>) -> Result<Response, ApiError> {
    let settings = app.engine.settings().await?;
    Ok(answer(&app, settings))
}

/// The settings with their version in the header.
fn answer(app: &App, versioned: VersionedSettings) -> Response {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let settings = &versioned.settings;
    let started = app.config.worker_concurrency;
    let places = settings.worker_concurrency.filter(|_| started > 0).unwrap_or(started);
    let effective = EffectiveSettings {
        worker_concurrency: number(places),
        loss_limit: settings.loss_limit.unwrap_or(app.config.loss_limit),
    };
    let current = SettingsVersion::from(versioned);
    if_match::versioned(StatusCode::OK, current.version, SettingsAnswer { current, effective })
}
