//! `GET /schedules/{name}/runs`

use axum::Json;
use axum::extract::State;
use duly_client::wire::{SlotPage, SlotView};

use super::schedule_name;
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::ScheduleNotFound;
use crate::routes::PathId;

/// Read what became of the slots
///
/// The last 100 slots that were decided, newest slot first: what each has started, or why it was skipped.
/// A slot is decided up to a minute ahead, so the first ones may lie in the future.
#[utoipa::path(
    get, path = "/schedules/{name}/runs", operation_id = "slot_runs", tag = "schedules",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(("name" = String, Path, description = "The schedule's name")),
    responses(
        (status = 200, description = "The slots", body = SlotPage),
        ScheduleNotFound,
    ),
)]
pub(crate) async fn slot_runs(
    State(app): State<App>,
    caller: Caller,
    name: PathId,
) -> Result<Json<SlotPage>, ApiError> {
    let records = app.engine.slot_records(&caller.tenant, &schedule_name(name)?).await?;
    let records = records.ok_or_else(ApiError::schedule_not_found)?;
    Ok(Json(SlotPage { items: records.into_iter().map(SlotView::from).collect() }))
}
