//! `/nodes`

use axum::Json;
use axum::extract::State;
use duly_client::wire::{LeaderView, NodeLife, NodeList, NodeView};
use duly_core::ports::store::NodeState;
use duly_engine::command::nodes::Cluster;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Access;
use crate::app::App;
use crate::error::ApiError;

/// The routes of this noun.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_nodes))
}

/// List nodes
///
/// The processes that share the store, and which of them leads. One that was killed is `SILENT`, and
/// stays listed for a day.
#[utoipa::path(
    get, path = "/nodes", operation_id = "list_nodes", tag = "nodes",
    extensions(("x-duly-access" = json!(Access::Viewer))),
    responses(
        (status = 200, description = "All of them", body = NodeList),
    ),
)]
pub(crate) async fn list_nodes(State(app): State<App>) -> Result<Json<NodeList>, ApiError> {
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
    let age = cluster.now.since(node.beat_at);
    NodeView {
        node_id: node.id,
        name: node.joined.name.clone(),
        roles: node.joined.roles.iter().map(ToString::to_string).collect(),
        version: node.joined.version.clone(),
        address: node.joined.address.clone(),
        started_at: node.started_at,
        beat_at: node.beat_at,
        beat_age_seconds: age.as_secs_f64(),
        state: if age > cluster.ttl { NodeLife::Silent } else { NodeLife::Alive },
        is_leader: cluster.leader.is_some_and(|leader| leader.node == node.id),
    }
}
