//! `/schedules`, one file per verb.

pub(crate) mod backfill;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod next;
pub(crate) mod preview;
pub(crate) mod put;
pub(crate) mod runs;
pub(crate) mod switch;
pub(crate) mod trigger;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use duly_client::wire::{ScheduleView, SlotTime};
use duly_core::name::ScheduleName;
use duly_core::redact::Redaction;
use duly_core::schedule::Rule;
use duly_core::time::Timestamp;
use duly_engine::command::schedules;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::error::ApiError;
use crate::if_match;
use crate::redacted::mask_schedule;
use crate::routes::PathId;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list_schedules))
        .routes(routes!(get::get_schedule, put::put_schedule, delete::delete_schedule))
        .routes(routes!(preview::preview_schedule))
        .routes(routes!(next::next_slots))
        .routes(routes!(runs::slot_runs))
        .routes(routes!(switch::pause_schedule))
        .routes(routes!(switch::resume_schedule))
        .routes(routes!(trigger::trigger_schedule))
        .routes(routes!(backfill::backfill_schedule))
}

/// A name that cannot be one answers like one that is not there.
fn schedule_name(name: PathId) -> Result<ScheduleName, ApiError> {
    let name = name.ok().and_then(|Path(name)| ScheduleName::new(&name).ok());
    name.ok_or_else(ApiError::schedule_not_found)
}

fn view(found: schedules::ScheduleView, redaction: &Redaction) -> ScheduleView {
    let schedules::ScheduleView { schedule, rule, template, next } = found;
    let mut view = ScheduleView::new(schedule, &rule, &template, next);
    mask_schedule(&mut view, redaction);
    view
}

/// A schedule with its version in the header.
async fn answer(
    app: &App,
    status: StatusCode,
    found: schedules::ScheduleView,
) -> Result<Response, ApiError> {
    let redaction = app.engine.redaction(&found.schedule.tenant).await?;
    Ok(if_match::versioned(status, found.schedule.version, view(found, &redaction)))
}

/// The next slots after an instant.
fn next_slots(rule: &Rule, after: Timestamp, count: usize) -> Vec<SlotTime> {
    let zone = TimeZoneDatabase::bundled().get(rule.zone.name()).unwrap_or(TimeZone::UTC);
    let local = |slot: Timestamp| {
        let at = jiff::Timestamp::from_millisecond(slot.millis()).unwrap_or_default();
        at.to_zoned(zone.clone()).strftime("%a %Y-%m-%d %H:%M:%S %Z").to_string()
    };
    let slots = rule.slots(after, Timestamp::clamped(i64::MAX), count);
    slots.into_iter().map(|slot| SlotTime { slot, local: local(slot) }).collect()
}
