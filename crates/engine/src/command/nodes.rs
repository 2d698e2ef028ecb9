//! Which nodes there are, and which of them leads.

use std::time::Duration;

use duly_core::ports::store::{self, JoinNode, Leader, NodeState};
use duly_core::time::Timestamp;

use crate::engine::Engine;

/// All nodes at one time.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Those that are known, the first that started first.
    pub nodes: Vec<NodeState>,
    /// Who leads, if anybody.
    pub leader: Option<Leader>,
    /// The store's time, by which they have given signs of life.
    pub now: Timestamp,
    /// How long a node may be silent before the others take it for dead.
    pub ttl: Duration,
}

impl Engine {
    /// Makes this process known to the other nodes.
    pub async fn introduce(&self, node: JoinNode) -> store::Result<()> {
        *self.introduced().lock() = Some(node.clone());
        self.store().join(node).await
    }

    /// The nodes, and who leads.
    pub async fn nodes(&self) -> store::Result<Cluster> {
        let nodes = self.store().nodes().await?;
        let leader = self.store().leader().await?;
        let ttl = self.config().session_ttl;
        Ok(Cluster { nodes, leader, now: self.store().now().await?, ttl })
    }
}
