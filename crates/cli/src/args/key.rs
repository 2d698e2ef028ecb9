//! Flags of `duly key`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::{ClientArgs, duration};

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create an API key and print its secret, once
    Create(KeyCreateArgs),
    /// List API keys, oldest first
    List(KeyListArgs),
    /// Revoke an API key for good
    Revoke(KeyRevokeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct KeyCreateArgs {
    /// What the key is for
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// A role of the key: viewer, submitter, worker, operator or admin; may be repeated
    #[arg(long = "role", value_name = "ROLE", required = true)]
    pub(crate) roles: Vec<String>,
    /// The tenant of the key, or '*' for all tenants
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// Restrict the key to this queue; may be repeated
    #[arg(long = "queue", value_name = "QUEUE")]
    pub(crate) queues: Vec<String>,
    /// Restrict the key to this type; may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<String>,
    /// How long the key is valid, such as 12h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) expires_in: Option<Duration>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct KeyListArgs {
    /// List the keys for all tenants ('*')
    #[arg(long)]
    pub(crate) installation: bool,
    /// Number of items
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// Continue after an earlier page
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct KeyRevokeArgs {
    /// Id of the key, which is not its secret
    #[arg(value_name = "KEY-ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
