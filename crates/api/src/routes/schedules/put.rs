//! `PUT /schedules/{name}`

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use duly_client::wire::{Problem, ScheduleRequest, ScheduleView};
use duly_core::limits::BODY_BYTES;
use duly_core::name::{ScheduleName, TenantName};
use duly_core::ports::store::Expected;
use duly_engine::command::schedules::ScheduleError;

use super::answer;
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::if_match::Condition;
use crate::responses::{ScheduleManaged, ScheduleMismatch};
use crate::routes::PathId;
use crate::{body, if_match, schedule_fields};

/// Create or replace a schedule
///
/// What is absent has its default, not the value of before. A replaced schedule goes on from now: slots
/// whose tasks no worker has started are decided again by the new definition. The same definition sent
/// again changes nothing. All that is wrong with it is reported at once.
#[utoipa::path(
    put, path = "/schedules/{name}", operation_id = "put_schedule", tag = "schedules",
    extensions(("x-duly-access" = json!(Access::Operator))),
    params(
        ("name" = String, Path, description = "The schedule's name: \
            `[A-Za-z0-9][A-Za-z0-9._-]{0,99}`, not `preview`, not beginning with `duly.`"),
        ("If-Match" = Option<String>, Header, example = "\"7\"",
            description = "Only if it has this version; `*`: only if there is one"),
        ("If-None-Match" = Option<String>, Header, example = "*",
            description = "`*`: only if there is none"),
    ),
    request_body(content = ScheduleRequest),
    responses(
        (status = 201, description = "The schedule was created", body = ScheduleView, headers(
            ("ETag" = String, description = "Its version, quoted"))),
        (status = 200, description = "The schedule was replaced", body = ScheduleView, headers(
            ("ETag" = String, description = "Its version, quoted"))),
        ScheduleManaged,
        ScheduleMismatch,
        (status = 422, description = "`INVALID_FIELDS`, `UNSUPPORTED_FIELD`; `SCHEDULE_LIMIT`: the \
            installation has 100,000; `TENANT_LIMIT`: the tenant has as many as its quota allows", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn put_schedule(
    State(app): State<App>,
    caller: Caller,
    name: PathId,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_json(&app, request, BODY_BYTES).await?;
    let condition = if_match::condition(&headers)?;
    let Path(name) = name.map_err(|_| ApiError::schedule_not_found())?;
    let now = app.engine.now().await?;
    let (name, schedule) = schedule_fields::read(&body.bytes, &name, now)?;
    drop(body);
    let expected = expected(&app, &caller.tenant, &name, condition).await?;
    let put = app.acting(&caller).put_schedule(&caller.tenant, &name, schedule, expected).await;
    let (found, created) = put.map_err(|error| match error {
        ScheduleError::NotFound => not_there(),
        error => error.into(),
    })?;
    answer(&app, if created { StatusCode::CREATED } else { StatusCode::OK }, found).await
}

async fn expected(
    app: &App,
    tenant: &TenantName,
    name: &ScheduleName,
    condition: Condition,
) -> Result<Expected, ApiError> {
    Ok(match condition {
        Condition::None => Expected::Any,
        Condition::Absent => Expected::Absent,
        Condition::Version(version) => Expected::Version(version),
        Condition::Present => match app.engine.schedule(tenant, name).await {
            Ok(None) => return Err(not_there()),
            // One whose definition is damaged is there, and can be replaced.
            Ok(Some(_)) | Err(ScheduleError::Damaged) => Expected::Any,
            Err(error) => return Err(error.into()),
        },
    })
}

/// The version of a schedule that is not there differs from any.
fn not_there() -> ApiError {
    ApiError::new(Code::VersionMismatch, "there is no schedule of this name; leave If-Match out")
}
