//! List the nodes and the leader.

use std::time::Duration;

use duly_core::ports::store::{self, JoinNode, Leader, NodeState};
use duly_core::time::Timestamp;

use crate::engine::Engine;

/// All nodes at one time.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The known nodes, by start time.
    pub nodes: Vec<NodeState>,
    /// The leader, if there is one.
    pub leader: Option<Leader>,
    /// The store's time, against which to read their last signs of life.
    pub now: Timestamp,
    /// How long a node may give no sign of life before other nodes take it for dead.
    pub ttl: Duration,
}

impl Engine {
    /// Introduces this process to the other nodes.
    pub async fn introduce(&self, node: JoinNode) -> store::Result<()> {
        *self.introduced().lock() = Some(node.clone());
        self.store().join(node).await
    }

    /// The nodes and the leader.
    pub async fn nodes(&self) -> store::Result<Cluster> {
        let nodes = self.store().nodes().await?;
        let leader = self.store().leader().await?;
        let ttl = self.config().session_ttl;
        Ok(Cluster { nodes, leader, now: self.store().now().await?, ttl })
    }
}
