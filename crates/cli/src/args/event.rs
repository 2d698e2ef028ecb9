//! Flags of `duly event`.

use clap::{Args, Subcommand};

use super::{ClientArgs, FilterArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum EventCommand {
    /// Print events as they happen, until Ctrl-C; event:task.failed selects kinds
    Tail(EventTailArgs),
    /// List the sinks that receive events, and how far behind they are
    Sinks(EventSinksArgs),
    /// Let a suspended sink receive events again, from now on
    Resume(SinkArgs),
    /// Remove a sink that no node serves any more: no event is kept for it
    Remove(SinkArgs),
}

#[derive(Debug, Args)]
pub(crate) struct EventTailArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Begin with the kept events since then: an instant, or a time ago such as 5m
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Stop after so many events
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EventSinksArgs {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SinkArgs {
    /// Name of the sink
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
