//! Processes of the server.

use duly_core::id::NodeId;
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// One process of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeView {
    /// Which; new with every start where nodes share a store.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub node_id: NodeId,
    /// What it calls itself.
    #[cfg_attr(feature = "openapi", schema(example = "db1-4711"))]
    pub name: String,
    /// What it does: `api`, `scheduler`, `worker`.
    pub roles: Vec<String>,
    /// Its release.
    #[cfg_attr(feature = "openapi", schema(example = "0.1.0"))]
    pub version: String,
    /// Where it listens; absent if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "127.0.0.1:8080"))]
    pub address: Option<String>,
    /// When it started.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "date-time"))]
    pub started_at: Timestamp,
    /// When it last gave a sign of life.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "date-time"))]
    pub beat_at: Timestamp,
    /// How long ago that was, by the store's clock.
    pub beat_age_seconds: f64,
    /// Whether it is alive, as far as the node that answers can tell.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub state: NodeLife,
    /// Whether it leads.
    pub is_leader: bool,
}

/// Whether a node is alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum NodeLife {
    /// It has given a sign of life within its time to live.
    #[default]
    Alive,
    /// It has not: it was killed, stands still or is cut off from the store.
    Silent,
}

/// Who does what only one node may do at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaderView {
    /// Which node.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub node_id: NodeId,
    /// Grows whenever the lead is taken anew.
    pub term: u64,
    /// Until when, unless it renews; absent where no other node could lead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = "date-time"))]
    pub until: Option<Timestamp>,
}

/// All nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeList {
    /// The first that started first.
    pub items: Vec<NodeView>,
    /// Who leads; absent while no node does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<LeaderView>,
}
