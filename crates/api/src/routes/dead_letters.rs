//! `/dlq`, one file per verb.

pub(crate) mod groups;
pub(crate) mod list;
pub(crate) mod purge;
pub(crate) mod replay;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list_dead_letters))
        .routes(routes!(groups::list_error_groups))
        .routes(routes!(replay::replay_dead_letters))
        .routes(routes!(purge::purge_dead_letters))
}
