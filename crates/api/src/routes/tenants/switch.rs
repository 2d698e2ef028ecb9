//! `POST /tenants/{name}/suspend` and `/resume`

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use duly_client::wire::{PauseRequest, Problem, TenantView};
use duly_engine::command::tenants::TenantOrder;

use super::{absent, answer, tenant_name};
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::{InstallationOnly, TenantMismatch, TenantNotFound, UnexpectedFields};
use crate::routes::PathId;
use crate::{body, fields, if_match, order_fields};

/// Suspend a tenant
///
/// It submits nothing, and none of its tasks starts, on any node; what was handed to a worker goes on. Its
/// schedules rest. The tenant needs no record before. For admins of the installation.
#[utoipa::path(
    post, path = "/tenants/{name}/suspend", operation_id = "suspend_tenant", tag = "tenants",
    extensions(("x-duly-access" = json!(Access::InstallationAdmin))),
    params(
        ("name" = String, Path, description = "The tenant's name"),
        ("If-Match" = Option<String>, Header, description = "Only if its record has this version"),
    ),
    request_body(content = Option<PauseRequest>, description = "May be left out"),
    responses(
        (status = 200, description = "The record, suspended", body = TenantView, headers(
            ("ETag" = String, description = "Its version, quoted"))),
        InstallationOnly,
        TenantNotFound,
        TenantMismatch,
        (status = 413, description = "`BODY_TOO_LARGE`; `TOO_LARGE`: 10,000 tenants have a record",
            body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn suspend_tenant(
    State(app): State<App>,
    caller: Caller,
    name: PathId,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    let note = order_fields::note(&body.bytes)?;
    let note = (!note.is_empty()).then_some(note);
    let (name, expected) = (tenant_name(name)?, if_match::expected(&headers)?);
    let order = TenantOrder::Suspend { note };
    let (record, _) = app.acting(&caller).change_tenant(name, order, expected).await?;
    Ok(answer(StatusCode::OK, record))
}

/// Resume a tenant
///
/// Its tasks start again. Resuming a tenant that is not suspended changes nothing. For admins of the
/// installation.
#[utoipa::path(
    post, path = "/tenants/{name}/resume", operation_id = "resume_tenant", tag = "tenants",
    extensions(("x-duly-access" = json!(Access::InstallationAdmin))),
    params(
        ("name" = String, Path, description = "The tenant's name"),
        ("If-Match" = Option<String>, Header, description = "Only if its record has this version"),
    ),
    responses(
        (status = 200, description = "The record", body = TenantView, headers(
            ("ETag" = String, description = "Its version, quoted"))),
        InstallationOnly,
        TenantNotFound,
        TenantMismatch,
        UnexpectedFields,
    ),
)]
pub(crate) async fn resume_tenant(
    State(app): State<App>,
    caller: Caller,
    name: PathId,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    fields::expect_no_fields(&body.bytes)?;
    let (name, expected) = (tenant_name(name)?, if_match::expected(&headers)?);
    app.engine.tenant(&name).await?.ok_or_else(absent)?;
    let (record, _) =
        app.acting(&caller).change_tenant(name, TenantOrder::Resume, expected).await?;
    Ok(answer(StatusCode::OK, record))
}
