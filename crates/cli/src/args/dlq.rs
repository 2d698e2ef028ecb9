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
    /// Delete dead letters for ever
    Purge(DlqPurgeArgs),
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
    pub(crate) filter: FilterArgs,
    /// Spread the runs: so many become due each second; all at once if absent
    #[arg(long, value_name = "N")]
    pub(crate) per_second: Option<f64>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DlqPurgeArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Every one of them; needed where no term spares anything
    #[arg(long)]
    pub(crate) all: bool,
    /// Confirm: what is purged is gone for ever
    #[arg(long, required = true)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
