//! `/nodes`

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use duly_client::wire::{LeaderView, NodeList, NodeView, Problem};
use duly_core::ports::store::NodeState;
use duly_engine::command::nodes::Cluster;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::error::ApiError;
use crate::query;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_nodes))
}

/// List nodes
///
/// The processes that share the store, and which of them leads. One that was killed stays listed for
/// a day; `beatAgeSeconds` tells.
#[utoipa::path(
    get, path = "/nodes", operation_id = "list_nodes", tag = "nodes",
    responses(
        (status = 200, description = "All of them", body = NodeList),
        (status = 400, description = "`INVALID_PARAMETER`", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list_nodes(
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<NodeList>, ApiError> {
    let [] = query::read(&uri, [])?;
    let cluster = app.engine.nodes().await?;
    let leader = cluster.leader.map(|leader| LeaderView {
        node_id: leader.node,
        term: leader.term,
        until: leader.until,
    });
    let items = cluster.nodes.iter().map(|node| view(node, &cluster)).collect();
    Ok(Json(NodeList { items, leader }))
}

fn view(node: &NodeState, cluster: &Cluster) -> NodeView {
    NodeView {
        node_id: node.id,
        name: node.joined.name.clone(),
        roles: node.joined.roles.iter().map(ToString::to_string).collect(),
        version: node.joined.version.clone(),
        address: node.joined.address.clone(),
        started_at: node.started_at,
        beat_at: node.beat_at,
        beat_age_seconds: cluster.now.since(node.beat_at).as_secs_f64(),
        is_leader: cluster.leader.is_some_and(|leader| leader.node == node.id),
    }
}
