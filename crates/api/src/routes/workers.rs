//! `/workers`

use axum::Json;
use axum::extract::{Path, Request, State};
use duly_client::wire::{DrainRequest, WorkerHome, WorkerLife, WorkerList, WorkerView};
use duly_core::id::SessionId;
use duly_core::ports::store::WorkerState;
use duly_core::time::Timestamp;
use duly_engine::command::worker::Error;
use duly_engine::command::workers::Workers;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::PathId;
use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::responses::SessionNotFound;
use crate::{body, order_fields};

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_workers)).routes(routes!(drain_worker))
}

/// List workers
///
/// The open sessions, by name: those of the nodes and the tenant's own remote workers. A worker that
/// was killed stays listed until its silence is noticed.
#[utoipa::path(
    get, path = "/workers", operation_id = "list_workers", tag = "workers",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    responses((status = 200, description = "All of them", body = WorkerList)),
)]
pub(crate) async fn list_workers(
    State(app): State<App>,
    caller: Caller,
) -> Result<Json<WorkerList>, ApiError> {
    let Workers { workers, now } = app.engine.workers(&caller.tenant).await?;
    let items = workers.into_iter().map(|worker| view(worker, now)).collect();
    Ok(Json(WorkerList { items, next_cursor: None }))
}

/// Drain a worker
///
/// The worker finishes what it holds and is given nothing more, until it ends or is told to go on
/// with `{"drain": false}`. After the answer nothing is granted to it through this node; through
/// other nodes, which learn it within one heartbeat, a grant may still be made until then. A remote
/// worker is told with the answer to its next heartbeat.
#[utoipa::path(
    post, path = "/workers/{id}/drain", operation_id = "drain_worker", tag = "workers",
    extensions(("x-duly-access" = json!(Access::Operator))),
    params(("id" = String, Path, description = "The worker's id: that of its session")),
    request_body(content = Option<DrainRequest>, description = "May be left out"),
    responses(
        (status = 200, description = "The worker", body = WorkerView),
        SessionNotFound,
    ),
)]
pub(crate) async fn drain_worker(
    State(app): State<App>,
    caller: Caller,
    id: PathId,
    request: Request,
) -> Result<Json<WorkerView>, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    let drain = order_fields::drain(&body.bytes)?;
    let id = id.ok().and_then(|Path(id)| id.parse::<SessionId>().ok());
    let id = id.ok_or_else(unknown_worker)?;
    let found = app.acting(&caller).drain_worker(&caller.tenant, id, drain).await;
    let found = found.map_err(|error| match error {
        Error::UnknownSession => unknown_worker(),
        error => error.into(),
    })?;
    let worker = found.workers.into_iter().next().ok_or_else(unknown_worker)?;
    Ok(Json(view(worker, found.now)))
}

/// The detail is for a person: that of other routes tells a worker to register again.
fn unknown_worker() -> ApiError {
    ApiError::new(Code::SessionNotFound, "there is no such worker; GET /workers lists them")
}

fn view(worker: WorkerState, now: Timestamp) -> WorkerView {
    let WorkerState { opened, node, draining, beat_at, leases } = worker;
    WorkerView {
        worker_id: opened.id,
        name: opened.name,
        home: if node.is_some() { WorkerHome::Node } else { WorkerHome::Remote },
        node_id: node,
        tenant: opened.tenant.map(String::from),
        types: opened.types.into_iter().map(String::from).collect(),
        queues: opened.queues.into_iter().map(String::from).collect(),
        state: if draining { WorkerLife::Draining } else { WorkerLife::Active },
        beat_at,
        beat_age_seconds: now.since(beat_at).as_secs_f64(),
        leases,
    }
}
