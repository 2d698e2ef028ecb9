//! `/leases`: remote workers get work and are done with it. One file per verb.

pub(crate) mod claim;
pub(crate) mod extend;
pub(crate) mod finish;
pub(crate) mod report;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(claim::claim_leases))
        .routes(routes!(finish::finish_leases))
        .routes(routes!(extend::extend_leases))
        .routes(routes!(report::report_progress))
        .routes(routes!(report::report_logs))
}
