//! `duly node …`.

use clap::Subcommand;

use super::ClientArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// List the nodes and show which one leads
    List(NodeListArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct NodeListArgs {
    /// Include nodes that have been silent for more than 10 minutes
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
