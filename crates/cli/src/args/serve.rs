//! `duly serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use duly_core::event::Kinds;
use duly_core::limits::LOSS_LIMIT;
use duly_core::node::Role;
use ipnet::IpNet;

use super::{concurrency, listen, session_ttl};
use crate::wiring::StoreUrl;

/// A flag overrides the environment, which overrides the file, which overrides the default.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// A YAML file with the keys store, listen, name, roles, insecure, auth, limits, worker, session,
    /// outbound, smtp, sources, schedules, events, log
    #[arg(long, value_name = "FILE", env = "DULY_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The store: postgres://USER:PASSWORD@HOST:PORT/DATABASE or sqlite:PATH
    #[arg(long, value_name = "URL", env = "DULY_STORE", hide_env_values = true)]
    pub(crate) store: Option<StoreUrl>,
    /// Address to listen on; port 0 picks a free port [default: 127.0.0.1:8080]
    #[arg(long, value_name = "HOST:PORT", env = "DULY_LISTEN", value_parser = listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// Name of this node [default: host and process id]
    #[arg(long, env = "DULY_NAME")]
    pub(crate) name: Option<String>,
    /// Roles of this node: api, scheduler, worker [default: all of them]
    #[arg(long, value_name = "ROLE", value_delimiter = ',', env = "DULY_ROLES")]
    pub(crate) roles: Option<Vec<Role>>,
    /// Accept every client without keys; only on loopback
    #[arg(long, env = "DULY_INSECURE", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true")]
    pub(crate) insecure: Option<bool>,
    /// Run although the database user owns the tables or is a superuser
    #[arg(long, env = "DULY_ALLOW_OWNER", value_name = "BOOL", num_args = 0..=1,
          require_equals = true, default_missing_value = "true")]
    pub(crate) allow_owner: Option<bool>,
    /// Running slots (handlers at once) of this process; the setting workerConcurrency overrides it
    /// [default: 64]
    #[arg(long, value_name = "N", env = "DULY_WORKER_CONCURRENCY", value_parser = concurrency)]
    pub(crate) concurrency: Option<usize>,
    /// How long a worker or node may be silent before its tasks go to other workers [default: 10s]
    #[arg(long, value_name = "DURATION", env = "DULY_SESSION_TTL", value_parser = session_ttl)]
    pub(crate) session_ttl: Option<Duration>,
    /// How many workers may die with a task before it fails; the setting lossLimit overrides it
    /// [default: 10]
    #[arg(long, value_name = "N", env = "DULY_WORKER_LOSS_LIMIT",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(LOSS_LIMIT)))]
    pub(crate) loss_limit: Option<u32>,
    /// Let the http handler connect to this network, such as 10.1.0.0/16; may be repeated
    #[arg(
        long = "allow-net",
        value_name = "CIDR",
        value_delimiter = ',',
        env = "DULY_OUTBOUND_ALLOW"
    )]
    pub(crate) allow_nets: Option<Vec<IpNet>>,
    /// Let the http handler connect to this port of public addresses; may be repeated
    /// [default: 80,443,8080,8443]
    #[arg(
        long = "allow-port",
        value_name = "PORT",
        value_delimiter = ',',
        env = "DULY_OUTBOUND_PORTS"
    )]
    pub(crate) allow_ports: Option<Vec<u16>>,
    /// Append events to this file, as one CloudEvent a line; the first free node of those that have the flag
    /// does it
    #[arg(long, value_name = "FILE", env = "DULY_EVENTS_FILE")]
    pub(crate) events_file: Option<PathBuf>,
    /// Kinds of the events in that file, such as task.failed or task.*
    /// [default: task.succeeded,task.failed,task.cancelled]
    #[arg(long, value_name = "KIND,…", env = "DULY_EVENTS_KINDS")]
    pub(crate) events_kinds: Option<Kinds>,
    /// Serve the type shell: every client that submits tasks can run programs as this user
    #[arg(long)]
    pub(crate) allow_shell: bool,
    /// Log level on standard error; -v logs more [default: warn]
    #[arg(long, value_name = "LEVEL", env = "DULY_LOG_LEVEL")]
    pub(crate) log_level: Option<LogLevel>,
    /// Switch on a bug that the tests must catch
    #[cfg(feature = "planted-bugs")]
    #[arg(long, value_name = "NAME", hide = true)]
    pub(crate) planted_bug: Option<duly_store::planted::PlantedBug>,
}

/// The log level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    /// Errors
    Error,
    /// Also warnings
    Warn,
    /// Also information
    Info,
    /// Also details
    Debug,
    /// Everything
    Trace,
}
