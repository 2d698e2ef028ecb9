//! Flags of `duly queue`.

use clap::{Args, Subcommand};

use super::ClientArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// List queues and what is in them
    List(QueueListArgs),
    /// Show what waits, runs and failed in a queue, and how fast it goes
    Stats(QueueArgs),
    /// Start nothing of a queue any more; what runs goes on
    Pause(QueuePauseArgs),
    /// Start what waits in a queue again
    Resume(QueueArgs),
}

#[derive(Debug, Args)]
pub(crate) struct QueueListArgs {
    /// How many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// Go on where an earlier list ended
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    /// Show the list anew every 2 s, on a terminal, until Ctrl-C
    #[arg(long, conflicts_with = "cursor")]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    /// The queue
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: String,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct QueuePauseArgs {
    /// The queue
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: String,
    /// Why, for people
    #[arg(long)]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
