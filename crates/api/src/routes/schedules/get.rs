//! `GET /schedules/{name}`

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use duly_client::wire::ScheduleView;

use super::{answer, schedule_name};
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::ScheduleNotFound;
use crate::routes::PathId;

/// Read a schedule
///
/// Its definition with every default, in plain English, too, and its next slot.
#[utoipa::path(
    get, path = "/schedules/{name}", operation_id = "get_schedule", tag = "schedules",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(("name" = String, Path, description = "The schedule's name")),
    responses(
        (status = 200, description = "The schedule", body = ScheduleView, headers(
            ("ETag" = String, description = "Its version, quoted, for `If-Match`"))),
        ScheduleNotFound,
    ),
)]
pub(crate) async fn get_schedule(
    State(app): State<App>,
    caller: Caller,
    name: PathId,
) -> Result<Response, ApiError> {
    let found = app.engine.schedule(&caller.tenant, &schedule_name(name)?).await?;
    answer(&app, StatusCode::OK, found.ok_or_else(ApiError::schedule_not_found)?).await
}
