//! `duly migrate …`.

use clap::Subcommand;

use super::Output;
use crate::wiring::StoreUrl;

#[derive(Debug, Subcommand)]
pub(crate) enum MigrateCommand {
    /// Bring the schema of a database up to date, as the first node that starts would
    Up(MigrateArgs),
    /// Show what was applied and what is missing: exit 1 if something is
    Status(MigrateArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct MigrateArgs {
    /// The database: postgres://USER:PASSWORD@HOST:PORT/DATABASE
    #[arg(long, value_name = "URL", env = "DULY_STORE", hide_env_values = true)]
    pub(crate) store: StoreUrl,
    /// How to print on standard output
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}
