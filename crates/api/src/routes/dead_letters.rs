//! `/dlq`, one file per verb.

pub(crate) mod groups;
pub(crate) mod list;
pub(crate) mod purge;
pub(crate) mod replay;

use duly_client::wire::BulkView;
use duly_core::bulk::{BulkAction, BulkOrder};
use duly_core::limits::BULK_WAIT;
use duly_core::state::Status;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list_dead_letters))
        .routes(routes!(groups::list_error_groups))
        .routes(routes!(replay::replay_dead_letters))
        .routes(routes!(purge::purge_dead_letters))
}

/// Starts a bulk action on dead letters and waits for its end, but not for long: a caller that asks for
/// little needs no second request.
async fn carry_out(
    app: &App,
    caller: &Caller,
    action: BulkAction,
    filter: String,
    per_second: Option<f64>,
) -> Result<BulkView, ApiError> {
    let order = BulkOrder {
        action,
        filter,
        dead_letters: true,
        ids: None,
        reason: String::new(),
        per_second,
    };
    let tenant = &caller.tenant;
    let started = app.acting(caller).start_bulk(tenant, &order, None).await?.task;
    let ended = app.engine.bulk(tenant, started.id, Some(BULK_WAIT)).await?;
    Ok(BulkView::from(ended.unwrap_or(started)))
}

/// Whether some may be left: the bulk action still runs, or it ended early.
fn is_more(bulk: &BulkView) -> bool {
    bulk.status != Status::Success
}
