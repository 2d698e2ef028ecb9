//! `GET /settings/history`

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use duly_client::wire::{SettingsPage, SettingsVersion};
use duly_core::limits::{DEFAULT_PAGE, SETTINGS_VERSIONS};
use duly_core::name::TenantName;
use duly_core::ports::store::ListSettings;

use crate::access::Access;
use crate::app::App;
use crate::cursor::{Scope, SettingsPosition};
use crate::error::ApiError;
use crate::responses::InvalidCursor;
use crate::{cursor, query};

/// List the versions of the settings
///
/// Newest first. The last 100 are kept.
#[utoipa::path(
    get, path = "/settings/history", operation_id = "list_settings", tag = "settings",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, example = 20,
            description = "How many versions; 50 if absent"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before"),
    ),
    responses(
        (status = 200, description = "One page", body = SettingsPage),
        InvalidCursor,
    ),
)]
pub(crate) async fn list_settings(
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<SettingsPage>, ApiError> {
    let [limit, cursor] = query::read(&uri, ["limit", "cursor"])?;
    let limit = query::limit(limit, DEFAULT_PAGE, SETTINGS_VERSIONS)?;
    // The settings are those of the installation, for each caller.
    let tenant = TenantName::default_tenant();
    let scope = Scope { tenant: &tenant, filter: "" };
    let place =
        cursor.map(|cursor| cursor::decode::<SettingsPosition>(scope, &cursor)).transpose()?;
    // One more than asked for tells whether there is another page.
    let page = ListSettings { before: place.map(|place| place.0), limit: limit + 1 };
    let mut versions = app.engine.settings_history(page).await?;
    let more = versions.len() > limit as usize;
    versions.truncate(limit as usize);
    let last = versions.last().filter(|_| more).map(|last| SettingsPosition(last.version));
    let next_cursor = last.map(|last| cursor::encode(scope, &last));
    let items = versions.into_iter().map(SettingsVersion::from).collect();
    Ok(Json(SettingsPage { items, next_cursor }))
}
