//! `duly backup` and `duly restore`.

use std::path::PathBuf;

use super::logs::ServerArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// The file to write; duly-TIME.db in this directory if none is named
    pub(crate) file: Option<PathBuf>,
    /// Copy the database in this directory, which no server may have open, instead of asking a server
    #[arg(long, value_name = "DIR", conflicts_with_all = ["server", "token"])]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// The backup
    pub(crate) file: PathBuf,
    /// The directory to restore into; no server may have its database open
    #[arg(long, value_name = "DIR", default_value = ".duly", env = "DULY_DATA")]
    pub(crate) data: PathBuf,
    /// Move the database that is there aside
    #[arg(long)]
    pub(crate) replace: bool,
}
