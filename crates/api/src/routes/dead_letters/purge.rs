//! `POST /dlq/purge`

use axum::Json;
use axum::extract::{Request, State};
use duly_client::wire::{Problem, PurgeDeadAnswer, PurgeDeadRequest};
use duly_core::bulk::BulkAction;

use super::{carry_out, is_more};
use crate::access::Access;
use crate::app::App;
use crate::body;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::order_fields::{self, PurgeDead};
use crate::responses::TenantSuspended;

/// Delete dead letters for ever
///
/// With everything that is known of them. An order whose filter spares nothing must say
/// `"all": true`. It is carried out by a bulk action. The answer comes as soon as that has ended, or
/// after 10 s with `more`; `GET /bulk-actions/{bulkId}` then tells how far it is.
#[utoipa::path(
    post, path = "/dlq/purge", operation_id = "purge_dead_letters", tag = "dead letters",
    extensions(("x-duly-access" = json!(Access::Operator))),
    request_body(content = PurgeDeadRequest),
    responses(
        (status = 200, description = "How many are gone", body = PurgeDeadAnswer),
        (status = 422, description = "`INVALID_FIELDS`: also if it would delete everything \
            without saying so", body = Problem, content_type = "application/problem+json"),
        TenantSuspended,
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
    let bulk = carry_out(&app, &caller, BulkAction::Delete, order.filter, None).await?;
    let (more, bulk_id) = (is_more(&bulk), bulk.bulk_id);
    Ok(Json(PurgeDeadAnswer { purged: bulk.done, more, bulk_id }))
}
