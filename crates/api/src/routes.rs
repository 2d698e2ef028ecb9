//! The routes, one file per noun.

pub(crate) mod admin;
pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod bulk_actions;
pub(crate) mod dead_letters;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod keys;
pub(crate) mod leases;
pub(crate) mod nodes;
pub(crate) mod queues;
pub(crate) mod schedules;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod sinks;
pub(crate) mod tasks;
pub(crate) mod tenants;
pub(crate) mod workers;
pub(crate) mod workflows;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use duly_core::id::TaskId;
use duly_core::name::{TenantName, TypeName};
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::error::ApiError;

/// How many ids are named to a caller who gave the beginning of several.
const CANDIDATES: u32 = 10;

/// The id in a path, as far as it could be read.
pub(crate) type PathId = Result<Path<String>, PathRejection>;

/// All that is under `/v1` and, for short, at the root.
pub(crate) fn versioned() -> OpenApiRouter<App> {
    tasks::routes()
        .merge(workflows::routes())
        .merge(schedules::routes())
        .merge(bulk_actions::routes())
        .merge(dead_letters::routes())
        .merge(queues::routes())
        .merge(sessions::routes())
        .merge(leases::routes())
        .merge(nodes::routes())
        .merge(workers::routes())
        .merge(events::routes())
        .merge(sinks::routes())
        .merge(settings::routes())
        .merge(audit::routes())
        .merge(keys::routes())
        .merge(tenants::routes())
        .merge(admin::routes())
        .merge(auth::routes())
}

/// The task that an id in a path names: a whole id, whether or not there is such a task, or the
/// beginning of exactly one; of one type if it is given. Everything else is not found: an id that
/// cannot be one answers like one that is not there.
async fn resolve_id(
    app: &App,
    tenant: &TenantName,
    id: PathId,
    task_type: Option<TypeName>,
    absent: fn() -> ApiError,
) -> Result<TaskId, ApiError> {
    let Path(text) = id.map_err(|_| absent())?;
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let ids = TaskId::starting_with(&text).ok_or_else(absent)?;
    let mut found = app.engine.find_ids(tenant, ids, task_type, CANDIDATES).await?;
    match found.pop() {
        Some(id) if found.is_empty() => Ok(id),
        Some(id) => {
            found.push(id);
            Err(ApiError::ambiguous(found))
        }
        None => Err(absent()),
    }
}
