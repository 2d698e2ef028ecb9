//! `POST /dlq/replay`

use axum::Json;
use axum::extract::{Request, State};
use duly_client::wire::{ReplayDeadAnswer, ReplayDeadRequest};
use duly_core::bulk::BulkAction;

use super::{carry_out, is_more};
use crate::access::Access;
use crate::app::App;
use crate::body;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::order_fields::{self, ReplayDead};
use crate::responses::TenantSuspended;

/// Run dead letters again
///
/// Opens the next run of each, last failure first: the same ids, fresh retries. What fails while
/// the order is carried out is left alone, and so is what a repeated order finds running. It is
/// carried out by a bulk action. The answer comes as soon as that has ended, or after 10 s with
/// `more`; `GET /bulk-actions/{bulkId}` then tells how far it is.
#[utoipa::path(
    post, path = "/dlq/replay", operation_id = "replay_dead_letters", tag = "dead letters",
    extensions(("x-duly-access" = json!(Access::Operator))),
    request_body(content = Option<ReplayDeadRequest>, description = "All of them, at once, if \
        left out"),
    responses(
        (status = 200, description = "How many will run again", body = ReplayDeadAnswer),
        TenantSuspended,
    ),
)]
pub(crate) async fn replay_dead_letters(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Json<ReplayDeadAnswer>, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    let ReplayDead { filter, per_second } = ReplayDead::read(&body.bytes)?;
    order_fields::filter(&filter, app.engine.now().await?)?;
    let bulk = carry_out(&app, &caller, BulkAction::Replay, filter, per_second).await?;
    let (more, bulk_id) = (is_more(&bulk), bulk.bulk_id);
    Ok(Json(ReplayDeadAnswer { replayed: bulk.done, more, bulk_id }))
}
