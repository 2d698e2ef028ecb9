//! `PUT /tenants/{name}`

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use duly_client::wire::{Problem, TenantRequest, TenantView};
use duly_core::limits::BODY_BYTES;
use duly_core::ports::store::Expected;
use duly_engine::command::tenants::{Error, TenantOrder};

use super::{answer, tenant_name};
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::if_match::Condition;
use crate::responses::{InstallationOnly, TenantMismatch, TenantNotFound};
use crate::routes::PathId;
use crate::{body, if_match, tenant_fields};

/// Create or replace the record of a tenant
///
/// What is absent holds as in the installation, not as before. Whether the tenant is suspended does not
/// change. For admins of the installation.
#[utoipa::path(
    put, path = "/tenants/{name}", operation_id = "put_tenant", tag = "tenants",
    extensions(("x-duly-access" = json!(Access::InstallationAdmin))),
    params(
        ("name" = String, Path, description = "The tenant's name: `[a-z0-9][a-z0-9._-]{0,99}`, not \
            beginning with `duly.`"),
        ("If-Match" = Option<String>, Header, example = "*",
            description = "Only if the record has this version; `*`: only if there is one"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if there is none"),
    ),
    request_body(content = TenantRequest),
    responses(
        (status = 201, description = "The record was created", body = TenantView, headers(
            ("ETag" = String, description = "Its version, quoted"))),
        (status = 200, description = "The record was replaced", body = TenantView, headers(
            ("ETag" = String, description = "Its version, quoted"))),
        InstallationOnly,
        TenantNotFound,
        TenantMismatch,
        (status = 413, description = "`BODY_TOO_LARGE`; `TOO_LARGE`: 10,000 tenants have a record",
            body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn put_tenant(
    State(app): State<App>,
    caller: Caller,
    name: PathId,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_json(&app, request, BODY_BYTES).await?;
    let condition = if_match::condition(&headers)?;
    let name = tenant_name(name).map_err(|_| no_name())?;
    let order = TenantOrder::Put(tenant_fields::draft(&body.bytes)?);
    let expected = match condition {
        Condition::None => Expected::Any,
        Condition::Absent => Expected::Absent,
        Condition::Version(version) => Expected::Version(version),
        Condition::Present => match app.engine.tenant(&name).await? {
            Some(_) => Expected::Any,
            None => return Err(Error::Conflict { version: None }.into()),
        },
    };
    let (record, created) = app.acting(&caller).change_tenant(name, order, expected).await?;
    Ok(answer(if created { StatusCode::CREATED } else { StatusCode::OK }, record))
}

fn no_name() -> ApiError {
    ApiError::new(Code::TenantNotFound, "this can be no name of a tenant")
}
