//! `DELETE /schedules/{name}`

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use super::schedule_name;
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::if_match;
use crate::responses::{ScheduleManaged, ScheduleMismatch, ScheduleNotFound};
use crate::routes::PathId;

/// Delete a schedule
///
/// Forgets it and the record of its slots. What it has started goes on, except for tasks that no worker
/// was given yet.
#[utoipa::path(
    delete, path = "/schedules/{name}", operation_id = "delete_schedule", tag = "schedules",
    extensions(("x-duly-access" = json!(Access::Operator))),
    params(
        ("name" = String, Path, description = "The schedule's name"),
        ("If-Match" = Option<String>, Header, description = "Only if it has this version"),
    ),
    responses(
        (status = 204, description = "The schedule is gone"),
        ScheduleNotFound,
        ScheduleManaged,
        ScheduleMismatch,
    ),
)]
pub(crate) async fn delete_schedule(
    State(app): State<App>,
    caller: Caller,
    name: PathId,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let (name, expected) = (schedule_name(name)?, if_match::expected(&headers)?);
    app.acting(&caller).delete_schedule(&caller.tenant, &name, expected).await?;
    Ok(StatusCode::NO_CONTENT)
}
