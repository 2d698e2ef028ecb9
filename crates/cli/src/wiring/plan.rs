//! The configuration of a node.

use std::sync::Arc;
use std::time::Duration;

use duly_api::{Authenticator, Limits, Tenants, Tls};
use duly_core::node::Role;
use duly_engine::ConfiguredSchedule;
use duly_worker::mail::Mailer;
use duly_worker::sql::Sources;
use ipnet::IpNet;

use super::{EventFile, StoreLocation};

/// The configuration of a node, from flags, environment and file.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Its name.
    pub(crate) name: String,
    /// Its roles.
    pub(crate) roles: Vec<Role>,
    /// The store.
    pub(crate) store: StoreLocation,
    /// Running slots of this process; with 0 it has no worker.
    pub(crate) concurrency: usize,
    /// How long a worker or another node may be silent.
    pub(crate) session_ttl: Duration,
    /// How many workers may die with a task.
    pub(crate) loss_limit: u32,
    /// Private networks that the http handler may connect to.
    pub(crate) outbound: Vec<IpNet>,
    /// Ports of public addresses that it may connect to, if they are not the usual ones.
    pub(crate) outbound_ports: Option<Vec<u16>>,
    /// Whether it serves the type shell.
    pub(crate) allow_shell: bool,
    /// Sends mails; without it, the type email is not served.
    pub(crate) mailer: Option<Mailer>,
    /// Databases that tasks may query; without any, the type sql is not served.
    pub(crate) sources: Sources,
    /// Whether it serves the sample types.
    pub(crate) samples: bool,
    /// How a request selects its tenant, where callers are not asked who they are.
    pub(crate) tenants: Tenants,
    /// Checks who calls; without it, every caller may do everything.
    pub(crate) auth: Option<Arc<Authenticator>>,
    /// How much one caller may ask.
    pub(crate) limits: Limits,
    /// Encrypts connections; without it they are plain.
    pub(crate) tls: Option<Tls>,
    /// The schedules that the leader keeps; without a list, it keeps those that are there.
    pub(crate) schedules: Option<Vec<ConfiguredSchedule>>,
    /// The file that events are appended to, if it has one.
    pub(crate) event_file: Option<EventFile>,
    /// A bug that the tests must catch.
    #[cfg(feature = "planted-bugs")]
    pub(crate) planted_bug: Option<duly_store::planted::PlantedBug>,
    /// How far the clock of a SQLite store is ahead of the machine's.
    #[cfg(feature = "planted-bugs")]
    pub(crate) clock_ahead: Option<Duration>,
}

impl Plan {
    /// Whether the node has this role.
    pub(crate) fn has_role(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Whether it runs tasks.
    pub(super) fn has_worker(&self) -> bool {
        self.has_role(Role::Worker) && self.concurrency > 0
    }
}
