//! `GET /workflows/{id}`

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use duly_client::wire::{PathStepView, WorkflowSummary, WorkflowView};
use duly_core::state::Status;
use duly_engine::command::workflows::{self, PathStep};

use super::{absent, workflow_id};
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::query;
use crate::responses::WorkflowNotFound;
use crate::routes::PathId;
use crate::routes::tasks::get::patience;

/// Read a workflow
///
/// How many of its tasks are in which state, and the chain of tasks that its end waits for. With `wait`
/// the answer comes as soon as it has ended, or after that time with the workflow as it is then.
#[utoipa::path(
    get, path = "/workflows/{id}", operation_id = "get_workflow", tag = "workflows",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    params(
        ("id" = String, Path, description = "The workflow's id"),
        ("wait" = Option<String>, Query, example = "30s",
            description = "How long to wait for its end, at most 60 s: `30s` or `PT30S`"),
    ),
    responses(
        (status = 200, description = "The workflow", body = WorkflowView),
        WorkflowNotFound,
    ),
)]
pub(crate) async fn get_workflow(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
    uri: Uri,
) -> Result<Json<WorkflowView>, ApiError> {
    let [wait] = query::read(&uri, ["wait"])?;
    let wait = wait.map(|text| patience(&text)).transpose()?;
    let (tenant, id) = (&caller.tenant, workflow_id(id)?);
    let found = match wait {
        None => app.engine.workflow(tenant, id).await?,
        Some(wait) => app.engine.wait_for_workflow(tenant, id, wait).await?,
    };
    Ok(Json(view(found.ok_or_else(absent)?)))
}

/// A workflow as readers see it.
pub(crate) fn view(found: workflows::WorkflowView) -> WorkflowView {
    let step = |step: &PathStep| PathStepView {
        key: step.key.clone(),
        task_id: step.task,
        status: step.status,
        leased_at: step.granted_at,
        finished_at: step.finished_at,
    };
    WorkflowView {
        summary: WorkflowSummary::from(found.state.workflow),
        counts: Status::ALL.into_iter().zip(found.state.counts).collect(),
        handled_failures: found.state.handled,
        critical_path: found.critical_path.iter().map(step).collect(),
    }
}
