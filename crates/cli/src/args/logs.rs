//! `duly task logs` and `duly task watch`.

use clap::ValueEnum;

use super::{ServerArgs, TaskRef};

#[derive(Debug, clap::Args)]
pub(crate) struct LogsArgs {
    /// Task id, or a prefix of 13 or more characters
    #[arg(value_name = "ID")]
    pub(crate) id: TaskRef,
    /// Follow the log until the run ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only the attempt with this epoch; see `duly task attempts`
    #[arg(long, value_name = "N")]
    pub(crate) epoch: Option<u32>,
    /// Prefix each line with its arrival time
    #[arg(short, long)]
    pub(crate) timestamps: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: LogOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// Task id, or a prefix of 13 or more characters
    #[arg(value_name = "ID")]
    pub(crate) id: TaskRef,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// The format of logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogOutput {
    /// The logged lines
    #[default]
    Text,
    /// One JSON array of all pieces, at the end
    Json,
    /// One JSON object per piece and line
    Ndjson,
}
