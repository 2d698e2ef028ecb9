//! The one process that has this store: it is the only node, and it always leads.

use std::time::Duration;

use async_trait::async_trait;
use duly_core::event::Event;
use duly_core::id::NodeId;
use duly_core::ports::store::{JoinNode, Leader, Leadership, NodeState, Nodes, Result};

use super::MemoryStore;

impl MemoryStore {
    /// No other process can lead.
    fn own_lead(&self) -> Leader {
        Leader { node: self.node, term: 1, until: None }
    }
}

#[async_trait]
impl Leadership for MemoryStore {
    async fn lead(&self, _: NodeId, _: Duration) -> Result<Leader> {
        Ok(self.own_lead())
    }

    async fn resign(&self, _: NodeId) -> Result<()> {
        Ok(())
    }

    async fn leader(&self) -> Result<Option<Leader>> {
        Ok(Some(self.own_lead()))
    }
}

#[async_trait]
impl Nodes for MemoryStore {
    fn node(&self) -> NodeId {
        self.node
    }

    async fn join(&self, node: JoinNode) -> Result<()> {
        let now = self.clock.now();
        let mut joined = self.joined.lock();
        let started_at = joined.as_ref().map_or(now, |(_, since)| *since);
        if joined.is_none() {
            self.model.lock().emit(Event::node_joined(self.node, &node.name, now));
        }
        *joined = Some((node, started_at));
        Ok(())
    }

    async fn nodes(&self) -> Result<Vec<NodeState>> {
        let joined = self.joined.lock().clone();
        let state = |(joined, started_at)| NodeState {
            id: self.node,
            joined,
            started_at,
            // The call itself is the sign of life.
            beat_at: self.clock.now(),
        };
        Ok(joined.map(state).into_iter().collect())
    }

    async fn leave(&self) -> Result<()> {
        if let Some((node, _)) = self.joined.lock().take() {
            let event = Event::node_left(self.node, &node.name, self.clock.now());
            self.model.lock().emit(event);
        }
        Ok(())
    }
}
