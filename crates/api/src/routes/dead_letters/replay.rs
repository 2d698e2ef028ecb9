//! `POST /dlq/replay`

use axum::Json;
use axum::extract::{Request, State};
use duly_client::wire::{ReplayDeadAnswer, ReplayDeadRequest};

use crate::access::Access;
use crate::app::App;
use crate::body;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::order_fields::{self, ReplayDead};

/// Run dead letters again
///
/// Opens the next run of each, last failure first: the same ids, fresh retries. What fails while
/// the order is carried out is left alone, and so is what a repeated order finds running. One
/// request takes 100,000 at the most; `more` says whether some are left.
#[utoipa::path(
    post, path = "/dlq/replay", operation_id = "replay_dead_letters", tag = "dead letters",
    extensions(("x-duly-access" = json!(Access::Operator))),
    request_body(content = Option<ReplayDeadRequest>, description = "All of them, at once, if \
        left out"),
    responses(
        (status = 200, description = "How many will run again", body = ReplayDeadAnswer),
    ),
)]
pub(crate) async fn replay_dead_letters(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Json<ReplayDeadAnswer>, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    let ReplayDead { filter, per_second } = ReplayDead::read(&body.bytes)?;
    let filter = order_fields::filter(&filter, app.engine.now().await?)?;
    let bulk = app.engine.replay_dead(&caller.tenant, filter, per_second).await?;
    Ok(Json(ReplayDeadAnswer { replayed: bulk.count as u64, more: bulk.more }))
}
