//! `/events`, one file per verb.

pub(crate) mod schemas;
pub(crate) mod stream;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(stream::stream_events))
        .routes(routes!(schemas::read_event_schemas))
}
