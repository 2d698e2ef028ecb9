//! `/keys`, one file per verb.

pub(crate) mod create;
pub(crate) mod list;
pub(crate) mod revoke;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create::create_key, list::list_keys))
        .routes(routes!(revoke::revoke_key))
}
