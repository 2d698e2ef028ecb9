//! The nodes of a store that fails.

use std::time::Duration;

use async_trait::async_trait;
use duly_core::id::NodeId;
use duly_core::ports::store::{JoinNode, Leader, Leadership, NodeState, Nodes, Result};

use super::Broken;

#[async_trait]
impl Leadership for Broken {
    async fn lead(&self, _: NodeId, _: Duration) -> Result<Leader> {
        Err(self.0())
    }

    async fn resign(&self, _: NodeId) -> Result<()> {
        Err(self.0())
    }

    async fn leader(&self) -> Result<Option<Leader>> {
        Err(self.0())
    }
}

#[async_trait]
impl Nodes for Broken {
    fn node(&self) -> NodeId {
        NodeId::ONLY
    }

    async fn join(&self, _: JoinNode) -> Result<()> {
        Err(self.0())
    }

    async fn nodes(&self) -> Result<Vec<NodeState>> {
        Err(self.0())
    }

    async fn leave(&self) -> Result<()> {
        Err(self.0())
    }
}
