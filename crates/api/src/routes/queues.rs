//! `/queues`, one file per verb.

pub(crate) mod list;
pub(crate) mod pause;
pub(crate) mod stats;

use axum::extract::Path;
use duly_client::wire::QueueView;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::QueueState;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::error::{ApiError, Code};
use crate::routes::PathId;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list_queues))
        .routes(routes!(stats::queue_stats))
        .routes(routes!(pause::pause_queue))
        .routes(routes!(pause::resume_queue))
}

/// A name that cannot be one answers like one that is not there.
fn queue_name(name: PathId) -> Result<QueueName, ApiError> {
    name.ok().and_then(|Path(name)| QueueName::new(&name).ok()).ok_or_else(absent)
}

fn absent() -> ApiError {
    let detail =
        "no task was ever submitted to a queue of this name, nor is it paused; see GET /queues";
    ApiError::new(Code::QueueNotFound, detail)
}

/// A queue as callers see it.
fn view(app: &App, tenant: &TenantName, state: QueueState) -> QueueView {
    let rate = app.engine.rate(tenant, &state.queue);
    QueueView::new(state, rate.submitted, rate.started)
}
