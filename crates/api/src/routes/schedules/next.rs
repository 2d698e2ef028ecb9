//! `GET /schedules/{name}/next`

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use duly_client::wire::NextSlots;

use super::schedule_name;
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::query;
use crate::responses::ScheduleNotFound;
use crate::routes::PathId;

/// How many slots are shown, by default and at the most.
const COUNT: (u32, u32) = (5, 100);

/// Read the next slots
///
/// In UTC and in the zone of the schedule. Those of a paused schedule fire only if it is resumed before.
#[utoipa::path(
    get, path = "/schedules/{name}/next", operation_id = "next_slots", tag = "schedules",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(
        ("name" = String, Path, description = "The schedule's name"),
        ("count" = Option<u32>, Query, minimum = 1, maximum = 100, example = 5,
            description = "How many slots; 5 if absent"),
    ),
    responses(
        (status = 200, description = "The slots; fewer if there are no more", body = NextSlots),
        ScheduleNotFound,
    ),
)]
pub(crate) async fn next_slots(
    State(app): State<App>,
    caller: Caller,
    name: PathId,
    uri: Uri,
) -> Result<Json<NextSlots>, ApiError> {
    let [count] = query::read(&uri, ["count"])?;
    let count = query::whole("count", count, COUNT.0, COUNT.1)?;
    let found = app.engine.schedule(&caller.tenant, &schedule_name(name)?).await?;
    let found = found.ok_or_else(ApiError::schedule_not_found)?;
    let now = app.engine.now().await?;
    Ok(Json(NextSlots {
        time_zone: found.rule.zone.name().to_owned(),
        status: found.schedule.status,
        items: super::next_slots(&found.rule, now, count as usize),
    }))
}
