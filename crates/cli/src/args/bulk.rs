//! Flags of `duly bulk`.

use clap::{Args, Subcommand};

use super::{ClientArgs, FilterArgs, TaskRef};

#[derive(Debug, Subcommand)]
pub(crate) enum BulkCommand {
    /// End tasks that wait or run
    Cancel(BulkCancelArgs),
    /// Start the next attempt of tasks that wait for it
    Retry(BulkArgs),
    /// Run tasks again that have ended; those that failed if no status is given
    Replay(BulkReplayArgs),
    /// Delete tasks that have ended, for ever; needs --yes where there is no terminal to ask on
    Delete(BulkArgs),
    /// See how far an order is, and how it ended
    Status(BulkStatusArgs),
    /// Stop an order: what is done stays done
    Abort(BulkIdArgs),
    /// List orders, newest first
    List(BulkListArgs),
}

/// Which tasks, and how to go about it.
#[derive(Debug, Args)]
pub(crate) struct BulkArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Every task; needed where no term spares anything
    #[arg(long)]
    pub(crate) all: bool,
    /// Do nothing, and tell for how many tasks it would be
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask on a terminal
    #[arg(long)]
    pub(crate) yes: bool,
    /// Show progress until it has ended: exit 6 if it failed or was aborted
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BulkCancelArgs {
    #[command(flatten)]
    pub(crate) bulk: BulkArgs,
    /// Why, for people
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct BulkReplayArgs {
    #[command(flatten)]
    pub(crate) bulk: BulkArgs,
    /// Spread the runs: so many become due each second; all at once if absent
    #[arg(long, value_name = "N")]
    pub(crate) per_second: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct BulkStatusArgs {
    /// The order: its id, or the first 13 or more characters of it
    #[arg(value_name = "ID")]
    pub(crate) id: TaskRef,
    /// Show progress until it has ended: exit 6 if it failed or was aborted
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BulkIdArgs {
    /// The order: its id, or the first 13 or more characters of it
    #[arg(value_name = "ID")]
    pub(crate) id: TaskRef,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BulkListArgs {
    /// How many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// Go on where an earlier list ended
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
