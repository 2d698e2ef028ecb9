//! Flags of `duly dlq`.

use clap::{Args, Subcommand};

use super::{ClientArgs, FilterArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum DlqCommand {
    /// List dead letters, newest failure first
    List(DlqListArgs),
    /// Count dead letters by queue, type and error, the largest group first
    Groups(DlqGroupsArgs),
    /// Run dead letters again
    Replay(DlqReplayArgs),
    /// Delete dead letters permanently; requires --yes without a terminal
    Purge(DlqActionArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DlqListArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Number of items
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// Continue after an earlier page
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DlqGroupsArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Number of groups
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DlqReplayArgs {
    #[command(flatten)]
    pub(crate) action: DlqActionArgs,
    /// Start N runs per second [default: all at once]
    #[arg(long, value_name = "N")]
    pub(crate) per_second: Option<f64>,
}

/// Flags of `replay` and `purge`.
#[derive(Debug, Args)]
pub(crate) struct DlqActionArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Select every dead letter; required when no filter is given
    #[arg(long)]
    pub(crate) all: bool,
    /// Count the matching dead letters and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
