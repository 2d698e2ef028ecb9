//! `duly serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use duly_core::limits::LOSS_LIMIT;
use duly_core::node::Role;
use ipnet::IpNet;

use super::{concurrency, listen, session_ttl};
use crate::wiring::StoreUrl;

/// What is absent here is taken from the environment, then from the file, then it is the default.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// A YAML file with the keys store, listen, name, roles, insecure, worker, session, outbound, log
    #[arg(long, value_name = "FILE", env = "DULY_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Where tasks are kept: postgres://USER:PASSWORD@HOST:PORT/DATABASE or sqlite:PATH
    #[arg(long, value_name = "URL", env = "DULY_STORE", hide_env_values = true)]
    pub(crate) store: Option<StoreUrl>,
    /// Where to listen; port 0 picks a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "HOST:PORT", env = "DULY_LISTEN", value_parser = listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// What to call this node [default: host and process id]
    #[arg(long, env = "DULY_NAME")]
    pub(crate) name: Option<String>,
    /// What this node does: api, scheduler, worker [default: all of them]
    #[arg(long, value_name = "ROLE", value_delimiter = ',', env = "DULY_ROLES")]
    pub(crate) roles: Option<Vec<Role>>,
    /// Answer whoever reaches this server, without keys; only on loopback
    #[arg(long, env = "DULY_INSECURE", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true")]
    pub(crate) insecure: Option<bool>,
    /// Handlers that run at once in this process, unless the settings say otherwise [default: 64]
    #[arg(long, value_name = "N", env = "DULY_WORKER_CONCURRENCY", value_parser = concurrency)]
    pub(crate) concurrency: Option<usize>,
    /// How long a worker or another node may be silent before others get its tasks [default: 10s]
    #[arg(long, value_name = "DURATION", env = "DULY_SESSION_TTL", value_parser = session_ttl)]
    pub(crate) session_ttl: Option<Duration>,
    /// How many workers may die with a task before it is failed, unless the settings say otherwise
    /// [default: 10]
    #[arg(long, value_name = "N", env = "DULY_WORKER_LOSS_LIMIT",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(LOSS_LIMIT)))]
    pub(crate) loss_limit: Option<u32>,
    /// Let the http handler dial this network, such as 10.1.0.0/16; may be given several times
    #[arg(
        long = "allow-net",
        value_name = "CIDR",
        value_delimiter = ',',
        env = "DULY_OUTBOUND_ALLOW"
    )]
    pub(crate) allow_nets: Option<Vec<IpNet>>,
    /// Serve the type shell: whoever submits tasks runs programs as this user
    #[arg(long)]
    pub(crate) allow_shell: bool,
    /// What to log on standard error; -v says more [default: warn]
    #[arg(long, value_name = "LEVEL", env = "DULY_LOG_LEVEL")]
    pub(crate) log_level: Option<LogLevel>,
    /// Switch on a bug that the tests must catch
    #[cfg(feature = "planted-bugs")]
    #[arg(long, value_name = "NAME", hide = true)]
    pub(crate) planted_bug: Option<duly_store::planted::PlantedBug>,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    /// Faults
    Error,
    /// And what may become one
    Warn,
    /// And what changes
    Info,
    /// And how
    Debug,
    /// Everything
    Trace,
}
