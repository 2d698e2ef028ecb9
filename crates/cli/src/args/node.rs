//! `duly node …`.

use clap::Subcommand;

use super::ClientArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Show the processes of the server, and which of them leads
    List(NodeListArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct NodeListArgs {
    /// Also those that have been silent for more than 10 minutes
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
