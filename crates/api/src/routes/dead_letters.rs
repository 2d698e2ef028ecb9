//! `/dlq`, one file per verb.

pub(crate) mod groups;
pub(crate) mod list;
pub(crate) mod purge;
pub(crate) mod replay;

use duly_core::filter::Filter;
use duly_core::ports::store::DeadFilter;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::error::ApiError;
use crate::query;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list_dead_letters))
        .routes(routes!(groups::list_error_groups))
        .routes(routes!(replay::replay_dead_letters))
        .routes(routes!(purge::purge_dead_letters))
}

/// The filter of a query. Times ago refer to the store's clock, by which tasks fail.
async fn filter(app: &App, text: Option<String>) -> Result<DeadFilter, ApiError> {
    let Some(text) = text else { return Ok(DeadFilter::default()) };
    let filter = Filter::parse(&text, app.engine.now().await?);
    let filter = filter.map_err(|bad| query::invalid(format!("`filter`: {bad}")))?;
    Ok(filter.into())
}
