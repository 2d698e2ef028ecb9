//! `POST /schedules/{name}/trigger`

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use duly_client::wire::SlotView;

use super::schedule_name;
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::{QuotaExceeded, ScheduleNotFound, TenantSuspended, UnexpectedFields};
use crate::routes::PathId;
use crate::{body, fields};

/// Run a schedule now
///
/// An additional slot at this millisecond, also while the schedule is paused. The overlap rule holds, so
/// it may be skipped; the jitter does not. The other slots stay as they are.
#[utoipa::path(
    post, path = "/schedules/{name}/trigger", operation_id = "trigger_schedule", tag = "schedules",
    extensions(("x-duly-access" = json!(Access::Operator))),
    params(("name" = String, Path, description = "The schedule's name")),
    responses(
        (status = 201, description = "The slot and what it has started, or why it was skipped",
            body = SlotView),
        TenantSuspended,
        QuotaExceeded,
        ScheduleNotFound,
        UnexpectedFields,
    ),
)]
pub(crate) async fn trigger_schedule(
    State(app): State<App>,
    caller: Caller,
    name: PathId,
    request: Request,
) -> Result<(StatusCode, Json<SlotView>), ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    fields::expect_no_fields(&body.bytes)?;
    let record =
        app.acting(&caller).trigger_schedule(&caller.tenant, &schedule_name(name)?).await?;
    Ok((StatusCode::CREATED, Json(record.into())))
}
