//! The one process that has the file open: it is the only node, and it always leads.

use std::time::Duration;

use async_trait::async_trait;
use duly_core::event::Event;
use duly_core::id::NodeId;
use duly_core::ports::store::{JoinNode, Leader, Leadership, NodeState, Nodes, Result};

use super::SqliteStore;
use super::error;
use super::verb::{Scope, Verb};

/// No other process can lead.
const LEADER: Leader = Leader { node: NodeId::ONLY, term: 1, until: None };

#[async_trait]
impl Leadership for SqliteStore {
    async fn lead(&self, _: NodeId, _: Duration) -> Result<Leader> {
        Ok(LEADER)
    }

    async fn resign(&self, _: NodeId) -> Result<()> {
        Ok(())
    }

    async fn leader(&self) -> Result<Option<Leader>> {
        Ok(Some(LEADER))
    }
}

/// Tells that this node joins or leaves, which the file does not say otherwise.
struct Announce {
    name: String,
    joins: bool,
}

impl Verb for Announce {
    type Answer = ();

    fn apply(&self, scope: &mut Scope<'_>) -> error::Result<()> {
        let event = if self.joins { Event::node_joined } else { Event::node_left };
        scope.emit(&event(NodeId::ONLY, &self.name, scope.now));
        Ok(())
    }
}

#[async_trait]
impl Nodes for SqliteStore {
    fn node(&self) -> NodeId {
        NodeId::ONLY
    }

    async fn join(&self, node: JoinNode) -> Result<()> {
        let now = self.clock.now();
        if self.joined.lock().is_none() {
            self.ask(Announce { name: node.name.clone(), joins: true }).await?;
        }
        let mut joined = self.joined.lock();
        let started_at = joined.as_ref().map_or(now, |(_, since)| *since);
        *joined = Some((node, started_at));
        Ok(())
    }

    async fn nodes(&self) -> Result<Vec<NodeState>> {
        let joined = self.joined.lock().clone();
        let state = |(joined, started_at)| NodeState {
            id: NodeId::ONLY,
            joined,
            started_at,
            // The call itself is the sign of life.
            beat_at: self.clock.now(),
        };
        Ok(joined.map(state).into_iter().collect())
    }

    async fn leave(&self) -> Result<()> {
        let joined = self.joined.lock().as_ref().map(|(node, _)| node.name.clone());
        if let Some(name) = joined {
            self.ask(Announce { name, joins: false }).await?;
            *self.joined.lock() = None;
        }
        Ok(())
    }
}
