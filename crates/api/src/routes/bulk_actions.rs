//! `/bulk-actions`, one file per verb.

pub(crate) mod abort;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod start;

use axum::extract::Path;
use duly_core::id::TaskId;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::error::{ApiError, Code};
use crate::routes::PathId;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(start::start_bulk_action, list::list_bulk_actions))
        .routes(routes!(get::get_bulk_action))
        .routes(routes!(abort::abort_bulk_action))
}

/// An id that cannot be one answers like one that is not there.
fn bulk_id(id: PathId) -> Result<TaskId, ApiError> {
    id.ok().and_then(|Path(id)| id.parse().ok()).ok_or_else(absent)
}

fn absent() -> ApiError {
    ApiError::new(Code::BulkActionNotFound, "there is no bulk action with this id")
}
