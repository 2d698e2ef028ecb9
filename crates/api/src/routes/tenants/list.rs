//! `GET /tenants`

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use duly_client::wire::{TenantPage, TenantView};
use duly_core::limits::{DEFAULT_PAGE, PAGE};
use duly_core::name::TenantName;

use crate::access::Access;
use crate::app::App;
use crate::cursor::Scope;
use crate::error::ApiError;
use crate::responses::{InstallationOnly, InvalidCursor};
use crate::{cursor, query};

/// List tenants
///
/// By name: those that have a record. A tenant needs none to submit tasks. For admins of the
/// installation.
#[utoipa::path(
    get, path = "/tenants", operation_id = "list_tenants", tag = "tenants",
    extensions(("x-duly-access" = json!(Access::InstallationAdmin))),
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, example = 50,
            description = "How many; 50 if absent"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before"),
    ),
    responses(
        (status = 200, description = "One page", body = TenantPage),
        InvalidCursor,
        InstallationOnly,
    ),
)]
pub(crate) async fn list_tenants(
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<TenantPage>, ApiError> {
    let [limit, cursor] = query::read(&uri, ["limit", "cursor"])?;
    let limit = query::limit(limit, DEFAULT_PAGE, PAGE)?;
    // The list is that of the installation, for each caller.
    let tenant = TenantName::default_tenant();
    let scope = Scope { tenant: &tenant, filter: "" };
    let after = cursor.map(|cursor| cursor::decode(scope, &cursor)).transpose()?;
    let mut records = app.engine.tenants(after, limit + 1).await?;
    let is_last = records.len() <= limit as usize;
    records.truncate(limit as usize);
    let last = records.last().filter(|_| !is_last);
    let next_cursor = last.map(|last| cursor::encode(scope, &last.name));
    Ok(Json(TenantPage { items: records.into_iter().map(TenantView::from).collect(), next_cursor }))
}
