//! `POST /schedules/{name}/pause` and `/resume`

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use duly_client::wire::{PauseRequest, ScheduleView};
use duly_core::schedule::ScheduleStatus;

use super::{answer, schedule_name};
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::{ScheduleManaged, ScheduleMismatch, ScheduleNotFound, UnexpectedFields};
use crate::routes::PathId;
use crate::{body, fields, if_match, order_fields};

/// Pause a schedule
///
/// It does not fire until it is resumed; what would have been a slot meanwhile is none. What it has started
/// goes on, except for tasks that no worker was given yet: they are withdrawn. Pausing a paused schedule
/// changes the note.
#[utoipa::path(
    post, path = "/schedules/{name}/pause", operation_id = "pause_schedule", tag = "schedules",
    extensions(("x-duly-access" = json!(Access::Operator))),
    params(
        ("name" = String, Path, description = "The schedule's name"),
        ("If-Match" = Option<String>, Header, description = "Only if it has this version"),
    ),
    request_body(content = Option<PauseRequest>, description = "May be left out; then the note stays"),
    responses(
        (status = 200, description = "The schedule, paused", body = ScheduleView, headers(
            ("ETag" = String, description = "Its version, quoted"))),
        ScheduleNotFound,
        ScheduleManaged,
        ScheduleMismatch,
    ),
)]
pub(crate) async fn pause_schedule(
    State(app): State<App>,
    caller: Caller,
    name: PathId,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    let note = Some(order_fields::note(&body.bytes)?).filter(|note| !note.is_empty());
    let (name, expected) = (schedule_name(name)?, if_match::expected(&headers)?);
    let paused = ScheduleStatus::Paused;
    let found =
        app.acting(&caller).switch_schedule(&caller.tenant, &name, paused, note, expected).await?;
    answer(&app, StatusCode::OK, found).await
}

/// Resume a schedule
///
/// It fires again from its next slot on. Resuming a schedule that is not paused changes nothing.
#[utoipa::path(
    post, path = "/schedules/{name}/resume", operation_id = "resume_schedule", tag = "schedules",
    extensions(("x-duly-access" = json!(Access::Operator))),
    params(
        ("name" = String, Path, description = "The schedule's name"),
        ("If-Match" = Option<String>, Header, description = "Only if it has this version"),
    ),
    responses(
        (status = 200, description = "The schedule, active", body = ScheduleView, headers(
            ("ETag" = String, description = "Its version, quoted"))),
        ScheduleNotFound,
        ScheduleManaged,
        ScheduleMismatch,
        UnexpectedFields,
    ),
)]
pub(crate) async fn resume_schedule(
    State(app): State<App>,
    caller: Caller,
    name: PathId,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    fields::expect_no_fields(&body.bytes)?;
    let (name, expected) = (schedule_name(name)?, if_match::expected(&headers)?);
    let active = ScheduleStatus::Active;
    let found =
        app.acting(&caller).switch_schedule(&caller.tenant, &name, active, None, expected).await?;
    answer(&app, StatusCode::OK, found).await
}
