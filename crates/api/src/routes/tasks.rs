//! `/tasks`, one file per verb.

pub(crate) mod attempts;
pub(crate) mod batch;
pub(crate) mod control;
pub(crate) mod delete;
pub(crate) mod explain;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod submit;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(submit::submit_task, list::list_tasks))
        .routes(routes!(batch::submit_batch))
        .routes(routes!(get::get_task, control::edit_task, delete::delete_task))
        .routes(routes!(attempts::list_attempts))
        .routes(routes!(explain::explain_task))
        .routes(routes!(logs::read_logs))
        .routes(routes!(control::cancel_task))
        .routes(routes!(control::replay_task))
        .routes(routes!(control::retry_task))
}
