//! What the operator of a server configures.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use duly_core::limits::LOSSES;
use ipnet::IpNet;

use crate::auth::Authenticator;
use crate::caller::Tenants;
use crate::guard::HostPolicy;
use crate::tls::Tls;

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
    /// How the tenant of a request is selected, where callers are not asked who they are.
    pub tenants: Tenants,
    /// Checks who calls; without it, every caller may do everything.
    pub auth: Option<Arc<Authenticator>>,
    /// How much one caller may ask.
    pub limits: Limits,
    /// Encrypts connections; without it they are plain.
    pub tls: Option<Tls>,
    /// Makes the request ids of this process differ from those of others; any random number.
    pub instance: u64,
}

/// How much one caller may ask.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Sign-ins that may fail within a minute before an address is refused; 0 for any number.
    pub failed_sign_ins: u32,
    /// Requests that one caller may make from one address in a second; any number if absent.
    pub requests_per_second: Option<NonZeroU32>,
    /// Connections from one address at once; 0 for any number.
    pub connections_per_address: usize,
    /// Streams of events of one caller at once; 0 for any number. All callers together have at most half as
    /// many as there may be connections.
    pub streams_per_caller: usize,
    /// Networks of the proxies whose `X-Forwarded-For` is believed.
    pub proxies: Vec<IpNet>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            failed_sign_ins: 10,
            requests_per_second: None,
            connections_per_address: 0,
            streams_per_caller: 1000,
            proxies: Vec::new(),
        }
    }
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
            auth: None,
            limits: Limits::default(),
            tls: None,
            instance: 0,
        }
    }
}
