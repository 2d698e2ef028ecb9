//! The processes that share the store.

use async_trait::async_trait;

use super::Result;
use crate::id::NodeId;
use crate::node::Role;
use crate::time::Timestamp;

/// How a node introduces itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinNode {
    /// What it calls itself.
    pub name: String,
    /// What it does.
    pub roles: Vec<Role>,
    /// Which release it runs.
    pub version: String,
    /// Where it listens, if it does.
    pub address: Option<String>,
}

/// A node as the others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// Which.
    pub id: NodeId,
    /// As it introduced itself.
    pub joined: JoinNode,
    /// When it opened the store.
    pub started_at: Timestamp,
    /// When its last heartbeat came; see [`super::Sessions::keep_alive`].
    pub beat_at: Timestamp,
}

/// Who has the store open.
#[async_trait]
pub trait Nodes {
    /// Which node this process is: the same for as long as it has the store open.
    fn node(&self) -> NodeId;

    /// Makes this process known under what it says of itself. Joining again changes that, and brings
    /// it back where others have forgotten it.
    async fn join(&self, node: JoinNode) -> Result<()>;

    /// The nodes that have joined and not left, those that started first first. One that is silent
    /// for [`crate::limits::NODE_MEMORY`] may be forgotten.
    async fn nodes(&self) -> Result<Vec<NodeState>>;

    /// This process is about to end.
    async fn leave(&self) -> Result<()>;
}
