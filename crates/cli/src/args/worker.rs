//! `duly worker …`.

use std::time::Duration;

use clap::Subcommand;
use duly_core::id::SessionId;
use duly_core::name::{QueueName, TypeName};
use ipnet::IpNet;

use super::{ClientArgs, ServerArgs, concurrency, duration};

#[derive(Debug, Subcommand)]
pub(crate) enum WorkerCommand {
    /// Run a remote worker with the built-in handlers
    Run(WorkerRunArgs),
    /// List the live workers, and what they serve
    List(WorkerListArgs),
    /// Let a worker finish its tasks without taking new ones, before a restart or a deployment
    Drain(WorkerDrainArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct WorkerListArgs {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WorkerDrainArgs {
    /// Worker id, from `duly worker list`
    #[arg(value_name = "ID")]
    pub(crate) id: SessionId,
    /// Let the worker take new tasks again
    #[arg(long)]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WorkerRunArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Name of this worker [default: host and process id]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Running slots: handlers that run at once
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = concurrency)]
    pub(crate) concurrency: usize,
    /// Serve only this queue; may be repeated
    #[arg(long = "queue", value_name = "QUEUE", value_parser = QueueName::new)]
    pub(crate) queues: Vec<QueueName>,
    /// Serve only this type; may be repeated
    #[arg(long = "type", value_name = "TYPE", value_parser = TypeName::new)]
    pub(crate) types: Vec<TypeName>,
    /// How long handlers may continue after the first signal
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) grace: Duration,
    /// Let the http handler connect to this network, such as 10.1.0.0/16; may be repeated
    #[arg(long = "allow-net", value_name = "CIDR")]
    pub(crate) allow_nets: Vec<IpNet>,
    /// Let the http handler connect to this port of public addresses; may be repeated
    /// [default: 80,443,8080,8443]
    #[arg(long = "allow-port", value_name = "PORT", value_delimiter = ',')]
    pub(crate) allow_ports: Option<Vec<u16>>,
    /// Serve the type shell: every client that submits tasks can run programs as this user
    #[arg(long)]
    pub(crate) allow_shell: bool,
}
