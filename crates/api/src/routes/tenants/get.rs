//! `GET /tenants/{name}`

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use duly_client::wire::TenantView;

use super::{absent, answer, tenant_name};
use crate::access::Access;
use crate::app::App;
use crate::error::ApiError;
use crate::responses::{InstallationOnly, TenantNotFound};
use crate::routes::PathId;

/// Read the record of a tenant
///
/// Its limits, what it sets for itself, and whether it is suspended. For admins of the installation.
#[utoipa::path(
    get, path = "/tenants/{name}", operation_id = "get_tenant", tag = "tenants",
    extensions(("x-duly-access" = json!(Access::InstallationAdmin))),
    params(("name" = String, Path, description = "The tenant's name")),
    responses(
        (status = 200, description = "The record", body = TenantView, headers(
            ("ETag" = String, description = "Its version, quoted, for `If-Match`"))),
        InstallationOnly,
        TenantNotFound,
    ),
)]
pub(crate) async fn get_tenant(State(app): State<App>, name: PathId) -> Result<Response, ApiError> {
    let found = app.engine.tenant(&tenant_name(name)?).await?;
    Ok(answer(StatusCode::OK, found.ok_or_else(absent)?))
}
