//! Flags of `duly workflow`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use duly_core::id::WorkflowId;

use super::{ClientArgs, ServerArgs, duration};

#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommand {
    /// Check a workflow file without a server
    Validate(WorkflowFileArgs),
    /// Submit a workflow file
    Run(WorkflowRunArgs),
    /// List workflows, newest first
    List(WorkflowListArgs),
    /// Show a workflow: where its tasks are, and what its end waits for
    Get(WorkflowIdArgs),
    /// Draw a workflow until it ends: exit 6 if it failed or was cancelled
    Watch(WorkflowWatchArgs),
    /// Print the graph of a workflow or of a workflow file
    Graph(WorkflowGraphArgs),
    /// Cancel a workflow and everything in it that has not ended
    Cancel(WorkflowCancelArgs),
    /// Run the failed tasks of a workflow again, and what waited for them
    Retry(WorkflowIdArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowFileArgs {
    /// Workflow in YAML or JSON
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowRunArgs {
    /// Workflow in YAML or JSON
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Wait for its end: exit 6 if it failed or was cancelled, 7 if it took longer than DURATION; write
    /// --wait=30s, or --wait for an hour
    #[arg(long, value_name = "DURATION", value_parser = duration, num_args = 0..=1,
          require_equals = true, default_missing_value = "1h")]
    pub(crate) wait: Option<Duration>,
    /// Draw it until it ends
    #[arg(long, conflicts_with = "wait")]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowListArgs {
    /// Only workflows in this state: running, success, failed or cancelled
    #[arg(long)]
    pub(crate) status: Option<String>,
    /// Only workflows of this name
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// How many workflows
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: u32,
    /// Where the page before ended
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowIdArgs {
    /// Workflow id
    #[arg(value_name = "ID")]
    pub(crate) id: WorkflowId,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowWatchArgs {
    /// Workflow id
    #[arg(value_name = "ID")]
    pub(crate) id: WorkflowId,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowCancelArgs {
    /// Workflow id
    #[arg(value_name = "ID")]
    pub(crate) id: WorkflowId,
    /// Reason, for people
    #[arg(long)]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowGraphArgs {
    /// Workflow id, or a workflow file
    #[arg(value_name = "ID|FILE")]
    pub(crate) source: String,
    /// Draw every task, also identical siblings
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: GraphOutput,
}

/// The format of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphOutput {
    /// Text for a terminal
    #[default]
    Text,
    /// Graphviz
    Dot,
    /// Mermaid, for Markdown
    Mermaid,
    /// An image
    Svg,
}
