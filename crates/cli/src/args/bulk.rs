//! Flags of `duly bulk`.

use clap::{Args, Subcommand};

use super::{ClientArgs, FilterArgs, TaskRef};

#[derive(Debug, Subcommand)]
pub(crate) enum BulkCommand {
    /// Cancel waiting or running tasks
    Cancel(BulkCancelArgs),
    /// Start the next attempt of tasks that wait for a retry
    Retry(BulkArgs),
    /// Run ended tasks again; failed ones if no status is given
    Replay(BulkReplayArgs),
    /// Delete ended tasks permanently; requires --yes without a terminal
    Delete(BulkArgs),
    /// Show the progress or outcome of a bulk action
    Status(BulkStatusArgs),
    /// Stop a bulk action; what is done stays done
    Abort(BulkIdArgs),
    /// List bulk actions, newest first
    List(BulkListArgs),
}

/// Flags of every bulk action.
#[derive(Debug, Args)]
pub(crate) struct BulkArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Select every task; required when no filter is given
    #[arg(long)]
    pub(crate) all: bool,
    /// Count the matching tasks and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
    /// Show progress until it ends: exit 6 if it failed or was aborted
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BulkCancelArgs {
    #[command(flatten)]
    pub(crate) bulk: BulkArgs,
    /// Reason, for people
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct BulkReplayArgs {
    #[command(flatten)]
    pub(crate) bulk: BulkArgs,
    /// Start N runs per second [default: all at once]
    #[arg(long, value_name = "N")]
    pub(crate) per_second: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct BulkStatusArgs {
    /// Id of the bulk action, or a prefix of 13 or more characters
    #[arg(value_name = "ID")]
    pub(crate) id: TaskRef,
    /// Show progress until it ends: exit 6 if it failed or was aborted
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BulkIdArgs {
    /// Id of the bulk action, or a prefix of 13 or more characters
    #[arg(value_name = "ID")]
    pub(crate) id: TaskRef,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BulkListArgs {
    /// Number of items
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// Continue after an earlier page
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
