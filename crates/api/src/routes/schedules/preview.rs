//! `POST /schedules/preview`

use axum::Json;
use axum::extract::{Request, State};
use duly_client::wire::{SchedulePreview, ScheduleRequest};
use duly_core::limits::BODY_BYTES;

use super::next_slots;
use crate::access::Access;
use crate::app::App;
use crate::error::ApiError;
use crate::{body, schedule_fields};

/// How many slots a preview shows.
const SLOTS: usize = 5;
/// Slots that the note about changes of the clocks is about: a year of a daily schedule. For one that fires
/// every few minutes, a change is worth a note only on the day before.
const NOTED: usize = 366;

/// Preview a schedule
///
/// Checks a definition as `PUT /schedules/{name}` does and says when it would fire. Nothing is stored.
#[utoipa::path(
    post, path = "/schedules/preview", operation_id = "preview_schedule", tag = "schedules",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    request_body(content = ScheduleRequest),
    responses((status = 200, description = "When it would fire", body = SchedulePreview)),
)]
pub(crate) async fn preview_schedule(
    State(app): State<App>,
    request: Request,
) -> Result<Json<SchedulePreview>, ApiError> {
    let body = body::read_json(&app, request, BODY_BYTES).await?;
    let now = app.engine.now().await?;
    let rule = schedule_fields::preview(&body.bytes, now)?;
    Ok(Json(SchedulePreview {
        description: rule.describe(),
        time_zone: rule.zone.name().to_owned(),
        next: next_slots(&rule, now, SLOTS),
        dst_note: rule.dst_note(now, NOTED),
    }))
}
