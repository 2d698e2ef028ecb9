//! What the operator of a server configures.

use std::time::Duration;

use duly_core::limits::LOSSES;

use crate::caller::Tenants;
use crate::guard::HostPolicy;

/// How the interface behaves; [`Config::default`] fits a server on loopback.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which `Host` headers are answered.
    pub allowed_hosts: HostPolicy,
    /// How long the head of a request may take.
    pub header_timeout: Duration,
    /// How long the body of a request may take.
    pub body_timeout: Duration,
    /// How long a connection may stay open without a request.
    pub idle_timeout: Duration,
    /// How long requests may go on once shutdown has begun.
    pub shutdown_grace: Duration,
    /// Connections at once; further ones wait to be accepted.
    pub connections: usize,
    /// Handlers that run at once in this process, unless the settings say otherwise; 0 if it has
    /// no worker.
    pub worker_concurrency: usize,
    /// Lost leases after which a task is failed, unless the settings say otherwise.
    pub loss_limit: u32,
    /// How the tenant of a request is selected.
    pub tenants: Tenants,
    /// Makes the request ids of this process differ from those of others; any random number.
    pub instance: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            allowed_hosts: HostPolicy::Local { also: Vec::new() },
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            shutdown_grace: Duration::from_secs(10),
            connections: 10_000,
            worker_concurrency: 0,
            loss_limit: LOSSES,
            tenants: Tenants::default(),
            instance: 0,
        }
    }
}
