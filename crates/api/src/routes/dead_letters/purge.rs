//! `POST /dlq/purge`

use axum::Json;
use axum::extract::{Request, State};
use duly_client::wire::{Problem, PurgeDeadAnswer, PurgeDeadRequest};

use crate::access::Access;
use crate::app::App;
use crate::body;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::order_fields::{self, PurgeDead};

/// Delete dead letters for ever
///
/// With everything that is known of them. An order whose filter spares nothing must say
/// `"all": true`. One request takes 100,000 at the most; `more` says whether some are left.
#[utoipa::path(
    post, path = "/dlq/purge", operation_id = "purge_dead_letters", tag = "dead letters",
    extensions(("x-duly-access" = json!(Access::Operator))),
    request_body(content = PurgeDeadRequest),
    responses(
        (status = 200, description = "How many are gone", body = PurgeDeadAnswer),
        (status = 422, description = "`INVALID_FIELDS`: also if it would delete everything \
            without saying so", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn purge_dead_letters(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Json<PurgeDeadAnswer>, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    let order = PurgeDead::read(&body.bytes)?;
    let filter = order_fields::filter(&order.filter, app.engine.now().await?)?;
    order.check(&filter)?;
    let bulk = app.engine.purge_dead(&caller.tenant, filter).await?;
    Ok(Json(PurgeDeadAnswer { purged: bulk.count as u64, more: bulk.more }))
}
