//! `duly task logs` and `duly task watch`.

use clap::ValueEnum;

use super::TaskRef;

#[derive(Debug, clap::Args)]
pub(crate) struct LogsArgs {
    /// The task
    #[arg(value_name = "ID")]
    pub(crate) id: TaskRef,
    /// Go on until the run has ended
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only the attempt under this grant; see `duly task attempts`
    #[arg(long, value_name = "N")]
    pub(crate) epoch: Option<u32>,
    /// Begin each line with the time at which it arrived
    #[arg(short, long)]
    pub(crate) timestamps: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// How to print on standard output
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: LogOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// The task
    #[arg(value_name = "ID")]
    pub(crate) id: TaskRef,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Which server.
#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {
    /// The server's address
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:8080",
        env = "DULY_SERVER",
        hide_env_values = true
    )]
    pub(crate) server: String,
    /// The token to send
    #[arg(long, env = "DULY_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
}

/// How logs are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogOutput {
    /// The lines as they were logged
    #[default]
    Text,
    /// One array of all pieces, when there are no more
    Json,
    /// One piece per line, as JSON
    Ndjson,
}
