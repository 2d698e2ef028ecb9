//! Who does what only one node may do at a time.

use std::time::Duration;

use async_trait::async_trait;

use super::Result;
use crate::id::NodeId;
use crate::time::Timestamp;

/// The node that leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Which.
    pub node: NodeId,
    /// Grows whenever the lead is taken anew, never back.
    pub term: u64,
    /// Until when, unless it renews; for ever where no other could lead.
    pub until: Option<Timestamp>,
}

/// The one lead that nodes share.
#[async_trait]
pub trait Leadership {
    /// Takes the lead if no node has it, or renews it, for this long from now by the store's clock.
    /// Answers who leads afterwards: a node that has lost the lead learns it, and changes nothing. Where
    /// the store dies with its process, that process always leads and nothing is written.
    async fn lead(&self, node: NodeId, ttl: Duration) -> Result<Leader>;

    /// Lets another lead at once. A node that does not lead changes nothing.
    async fn resign(&self, node: NodeId) -> Result<()>;

    /// Who leads now, if anybody.
    async fn leader(&self) -> Result<Option<Leader>>;
}
