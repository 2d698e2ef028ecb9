//! `POST /schedules/{name}/backfill`

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use duly_client::wire::{BackfillAnswer, BackfillRequest, BackfillSlotView};
use duly_core::limits::BODY_BYTES;
use duly_engine::command::schedules::{Backfill, BackfillSlot};

use super::schedule_name;
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::responses::{ScheduleNotFound, TenantSuspended};
use crate::routes::PathId;
use crate::{body, schedule_fields};

/// Run slots of the past
///
/// Those from one instant to another, both included, that have not run before, at most 400 days back. A
/// task of the system runs them one after the other, under the overlap rule; cancel it to stop them. With
/// `dryRun` nothing runs, and the answer names the first 1,000 slots.
#[utoipa::path(
    post, path = "/schedules/{name}/backfill", operation_id = "backfill_schedule", tag = "schedules",
    extensions(("x-duly-access" = json!(Access::Operator))),
    params(("name" = String, Path, description = "The schedule's name")),
    request_body(content = BackfillRequest),
    responses(
        (status = 200, description = "With `dryRun`, the slots; without, that there is none",
            body = BackfillAnswer),
        (status = 202, description = "The slots run", body = BackfillAnswer, headers(
            ("Location" = String, description = "Where to read the task that runs them"))),
        TenantSuspended,
        ScheduleNotFound,
    ),
)]
pub(crate) async fn backfill_schedule(
    State(app): State<App>,
    caller: Caller,
    name: PathId,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read_json(&app, request, BODY_BYTES).await?;
    let (from, to, dry_run) = schedule_fields::backfill(&body.bytes)?;
    let name = schedule_name(name)?;
    let Backfill { slots, more, task } =
        app.acting(&caller).backfill_schedule(&caller.tenant, &name, from, to, dry_run).await?;
    let slot = |BackfillSlot { slot, ran_before }| BackfillSlotView { slot, ran_before };
    let slots = slots.into_iter().map(slot).collect();
    let answer = Json(BackfillAnswer { slots, more, task_id: task });
    let Some(task) = task else { return Ok(answer.into_response()) };
    Ok((StatusCode::ACCEPTED, [(LOCATION, format!("/v1/tasks/{task}"))], answer).into_response())
}
