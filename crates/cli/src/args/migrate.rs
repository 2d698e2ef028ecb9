//! `duly migrate …`.

use clap::Subcommand;

use super::Output;
use crate::wiring::StoreUrl;

#[derive(Debug, Subcommand)]
pub(crate) enum MigrateCommand {
    /// Apply pending migrations, as the first node that starts would
    Up(MigrateArgs),
    /// Show applied and pending migrations: exit 1 if any is pending
    Status(MigrateArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct MigrateArgs {
    /// The database: postgres://USER:PASSWORD@HOST:PORT/DATABASE
    #[arg(long, value_name = "URL", env = "DULY_STORE", hide_env_values = true)]
    pub(crate) store: StoreUrl,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}
