//! `duly token …`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use duly_core::access::{AccessRole, TenantGrant};

use super::duration;

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Sign a token, and print it
    Create(TokenCreateArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct TokenCreateArgs {
    /// The YAML file of `duly serve`, whose `auth:` names the keys
    #[arg(long, value_name = "FILE", env = "DULY_CONFIG")]
    pub(crate) config: PathBuf,
    /// The tenant that the token is for; * for all of them
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: TenantGrant,
    /// Roles: viewer, submitter, worker, operator, admin
    #[arg(long, value_name = "ROLE", value_delimiter = ',', required = true)]
    pub(crate) roles: Vec<AccessRole>,
    /// Who the token is for; the audit log names it
    #[arg(long, value_name = "NAME")]
    pub(crate) subject: String,
    /// How long the token may be used
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    pub(crate) expires_in: Duration,
    /// Id of the key that signs [default: the first that can]
    #[arg(long, value_name = "ID")]
    pub(crate) key: Option<String>,
}
