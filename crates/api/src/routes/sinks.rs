//! `/sinks`: who receives events.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use duly_client::wire::{SinkList, SinkView};
use duly_core::event::SinkName;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Access;
use crate::app::App;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::responses::{InstallationOnly, SinkNotFound, UnexpectedFields};
use crate::routes::PathId;
use crate::{body, fields};

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_sinks))
        .routes(routes!(resume_sink))
        .routes(routes!(remove_sink))
}

/// List sinks
///
/// Who receives events: brokers, notifications, applications, and for each tenant whose stream was read
/// lately what keeps its events. A sink that is too far behind is suspended, and receives nothing. For
/// admins of the installation.
#[utoipa::path(
    get, path = "/sinks", operation_id = "list_sinks", tag = "events",
    extensions(("x-duly-access" = json!(Access::InstallationAdmin))),
    responses(
        (status = 200, description = "All of them, by name", body = SinkList),
        InstallationOnly,
    ),
)]
pub(crate) async fn list_sinks(State(app): State<App>) -> Result<Json<SinkList>, ApiError> {
    let sinks = app.engine.list_sinks().await?;
    let now = app.engine.now().await?;
    let items = sinks.into_iter().map(|sink| SinkView::new(sink, now)).collect();
    Ok(Json(SinkList { items }))
}

/// Resume a sink
///
/// Lets a suspended sink receive events again, from the present on; what it has missed is lost. For admins of
/// the installation. A sink that is not suspended goes on.
#[utoipa::path(
    post, path = "/sinks/{name}/resume", operation_id = "resume_sink", tag = "events",
    extensions(("x-duly-access" = json!(Access::InstallationAdmin))),
    params(("name" = String, Path, description = "The sink's name")),
    responses(
        (status = 200, description = "The sink", body = SinkView),
        InstallationOnly,
        SinkNotFound,
        UnexpectedFields,
    ),
)]
pub(crate) async fn resume_sink(
    State(app): State<App>,
    caller: Caller,
    name: PathId,
    request: Request,
) -> Result<Json<SinkView>, ApiError> {
    let body = body::read_optional_json(&app, request).await?;
    fields::expect_no_fields(&body.bytes)?;
    let name = sink_name(name)?;
    if !app.acting(&caller).resume_sink(&name).await? {
        return Err(absent());
    }
    let now = app.engine.now().await?;
    let mut sinks = app.engine.list_sinks().await?.into_iter();
    let sink = sinks.find(|it| it.sink.name == name).ok_or_else(absent)?;
    Ok(Json(SinkView::new(sink, now)))
}

/// Remove a sink
///
/// Nothing is kept for it any more. One that a node still has in its configuration comes back with the next
/// start of that node, and one that keeps events for readers with the next reader. For admins of the
/// installation.
#[utoipa::path(
    delete, path = "/sinks/{name}", operation_id = "remove_sink", tag = "events",
    extensions(("x-duly-access" = json!(Access::InstallationAdmin))),
    params(("name" = String, Path, description = "The sink's name")),
    responses((status = 204, description = "It is gone"), InstallationOnly, SinkNotFound),
)]
pub(crate) async fn remove_sink(
    State(app): State<App>,
    caller: Caller,
    name: PathId,
) -> Result<StatusCode, ApiError> {
    let removed = app.acting(&caller).remove_sink(&sink_name(name)?).await?;
    if removed { Ok(StatusCode::NO_CONTENT) } else { Err(absent()) }
}

fn sink_name(name: PathId) -> Result<SinkName, ApiError> {
    name.ok().and_then(|Path(name)| SinkName::new(&name).ok()).ok_or_else(absent)
}

fn absent() -> ApiError {
    ApiError::new(Code::SinkNotFound, "there is no sink of this name; see GET /sinks")
}
