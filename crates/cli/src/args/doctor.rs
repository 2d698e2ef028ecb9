//! Flags of `duly doctor`.

use std::path::PathBuf;

use super::{CallerArgs, Output};
use crate::wiring::StoreUrl;

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Data directory
    #[arg(long, value_name = "DIR", default_value = ".duly", env = "DULY_DATA")]
    pub(crate) data: PathBuf,
    /// Check this store instead of the data directory: postgres://USER:PASSWORD@HOST:PORT/DATABASE
    /// or sqlite:PATH
    #[arg(long, value_name = "URL", env = "DULY_STORE", hide_env_values = true)]
    pub(crate) store: Option<StoreUrl>,
    /// Address of the server; if given, it must answer [default: http://127.0.0.1:8080]
    #[arg(long, value_name = "URL", env = "DULY_SERVER", hide_env_values = true)]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}
