//! `/tenants`, one file per verb. They are for admins of the installation alone.

pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod put;
pub(crate) mod switch;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use duly_client::wire::TenantView;
use duly_core::name::TenantName;
use duly_core::tenant::TenantRecord;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::error::{ApiError, Code};
use crate::if_match;
use crate::routes::PathId;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list_tenants))
        .routes(routes!(get::get_tenant, put::put_tenant))
        .routes(routes!(switch::suspend_tenant))
        .routes(routes!(switch::resume_tenant))
}

/// A name that cannot be one answers like one that has no record.
fn tenant_name(name: PathId) -> Result<TenantName, ApiError> {
    name.ok().and_then(|Path(name)| TenantName::given(&name).ok()).ok_or_else(absent)
}

fn absent() -> ApiError {
    let detail = "there is no record of this tenant: it has no quotas and is not suspended";
    ApiError::new(Code::TenantNotFound, detail)
}

/// A record with its version in the header.
fn answer(status: StatusCode, record: TenantRecord) -> Response {
    if_match::versioned(status, record.version, TenantView::from(record))
}
