//! `/bulk-actions`, one file per verb.

pub(crate) mod abort;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod start;

use duly_core::id::TaskId;
use duly_core::name::{TenantName, TypeName};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::error::{ApiError, Code};
use crate::routes::{PathId, resolve_id};

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(start::start_bulk_action, list::list_bulk_actions))
        .routes(routes!(get::get_bulk_action))
        .routes(routes!(abort::abort_bulk_action))
}

/// The bulk action that an id in a path names, perhaps by its beginning.
async fn bulk_id(app: &App, tenant: &TenantName, id: PathId) -> Result<TaskId, ApiError> {
    resolve_id(app, tenant, id, Some(TypeName::bulk()), absent).await
}

fn absent() -> ApiError {
    ApiError::new(Code::BulkActionNotFound, "there is no bulk action with this id")
}
