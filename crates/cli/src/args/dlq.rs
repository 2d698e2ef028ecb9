//! Flags of `duly dlq`.

use clap::{Args, Subcommand};

use super::{ClientArgs, FilterArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum DlqCommand {
    /// List dead letters, last failure first
    List(DlqListArgs),
    /// Count dead letters by queue, type and error, the largest group first
    Groups(DlqGroupsArgs),
    /// Run dead letters again
    Replay(DlqReplayArgs),
    /// Delete dead letters for ever; needs --yes where there is no terminal to ask on
    Purge(DlqOrderArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DlqListArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// How many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// Go on where an earlier list ended
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DlqGroupsArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// How many groups
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DlqReplayArgs {
    #[command(flatten)]
    pub(crate) order: DlqOrderArgs,
    /// Spread the runs: so many become due each second; all at once if absent
    #[arg(long, value_name = "N")]
    pub(crate) per_second: Option<f64>,
}

/// Which dead letters, and how to go about it.
#[derive(Debug, Args)]
pub(crate) struct DlqOrderArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Every dead letter; needed where there is no filter
    #[arg(long)]
    pub(crate) all: bool,
    /// Do nothing, and tell for how many dead letters it would be
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask on a terminal
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
