//! The routes, one file per noun.

pub(crate) mod bulk_actions;
pub(crate) mod dead_letters;
pub(crate) mod health;
pub(crate) mod leases;
pub(crate) mod nodes;
pub(crate) mod queues;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod tasks;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;

/// The id in a path, as far as it could be read.
pub(crate) type PathId = Result<Path<String>, PathRejection>;

/// All that is under `/v1` and, for short, at the root.
pub(crate) fn versioned() -> OpenApiRouter<App> {
    tasks::routes()
        .merge(bulk_actions::routes())
        .merge(dead_letters::routes())
        .merge(queues::routes())
        .merge(sessions::routes())
        .merge(leases::routes())
        .merge(nodes::routes())
        .merge(settings::routes())
}
