//! Flags of `duly queue`.

use clap::{Args, Subcommand};

use super::ClientArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// List queues with their task counts
    List(QueueListArgs),
    /// Show waiting, running and failed tasks of a queue, and its rates
    Stats(QueueArgs),
    /// Stop starting tasks of a queue; running tasks continue
    Pause(QueuePauseArgs),
    /// Start tasks of a paused queue again
    Resume(QueueArgs),
}

#[derive(Debug, Args)]
pub(crate) struct QueueListArgs {
    /// Number of items
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// Continue after an earlier page
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    /// Refresh the list every 2 s, on a terminal, until Ctrl-C
    #[arg(long, conflicts_with = "cursor")]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    /// Name of the queue
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: String,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct QueuePauseArgs {
    /// Name of the queue
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: String,
    /// Reason, for people
    #[arg(long)]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
