//! `duly backup` and `duly restore`.

use std::path::PathBuf;

use super::ServerArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// The file to write [default: duly-TIME.db in this directory]
    pub(crate) file: Option<PathBuf>,
    /// Copy the database in this directory instead of calling a server; no server may have it open
    #[arg(long, value_name = "DIR", conflicts_with_all = ["server", "token"])]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// The backup file
    pub(crate) file: PathBuf,
    /// The directory to restore into; no server may have its database open
    #[arg(long, value_name = "DIR", default_value = ".duly", env = "DULY_DATA")]
    pub(crate) data: PathBuf,
    /// Move an existing database aside
    #[arg(long)]
    pub(crate) replace: bool,
}
