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
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
