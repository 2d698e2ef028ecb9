//! What a node is to be.

use std::time::Duration;

use duly_api::Tenants;
use duly_core::node::Role;
use ipnet::IpNet;

use super::StorePlace;

/// A node as whoever starts it wants it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// What it calls itself.
    pub(crate) name: String,
    /// What it does.
    pub(crate) roles: Vec<Role>,
    /// Where tasks are kept.
    pub(crate) store: StorePlace,
    /// Handlers that run at once in this process; with none it has no worker.
    pub(crate) concurrency: usize,
    /// How long a worker or another node may be silent.
    pub(crate) session_ttl: Duration,
    /// How many workers may die with a task.
    pub(crate) loss_limit: u32,
    /// Networks that the http handler may dial although they are private.
    pub(crate) outbound: Vec<IpNet>,
    /// Whether it serves the type shell.
    pub(crate) allow_shell: bool,
    /// Whether it serves the samples.
    pub(crate) samples: bool,
    /// Whose tasks callers see.
    pub(crate) tenants: Tenants,
    /// A bug that the tests must catch.
    #[cfg(feature = "planted-bugs")]
    pub(crate) planted_bug: Option<duly_store::planted::PlantedBug>,
}

impl Plan {
    /// Whether the node has this role.
    pub(crate) fn is(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Whether it runs tasks.
    pub(super) fn has_worker(&self) -> bool {
        self.is(Role::Worker) && self.concurrency > 0
    }
}
