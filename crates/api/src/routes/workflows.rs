//! `/workflows`, one file per verb.

pub(crate) mod control;
pub(crate) mod get;
pub(crate) mod graph;
pub(crate) mod list;
pub(crate) mod submit;

use axum::extract::Path;
use duly_core::id::WorkflowId;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::error::{ApiError, Code};
use crate::routes::PathId;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(submit::submit_workflow, list::list_workflows))
        .routes(routes!(get::get_workflow))
        .routes(routes!(graph::get_graph))
        .routes(routes!(control::cancel_workflow))
        .routes(routes!(control::retry_workflow))
}

/// The workflow that an id in a path names. One that cannot be an id answers like one that is not
/// there.
fn workflow_id(id: PathId) -> Result<WorkflowId, ApiError> {
    let Path(text) = id.map_err(|_| absent())?;
    text.parse().map_err(|_| absent())
}

/// Answers alike for a workflow that does not exist and for another tenant's.
fn absent() -> ApiError {
    ApiError::new(Code::WorkflowNotFound, "there is no workflow with this id")
}
