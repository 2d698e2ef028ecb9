//! `duly handler …`.

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use duly_worker::handlers::reference::REFERENCES;

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum HandlerCommand {
    /// List the built-in task types and the flags they need
    List(HandlerListArgs),
    /// Show payload, result, errors and examples of a built-in task type
    Show(HandlerShowArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct HandlerListArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HandlerShowArgs {
    /// The task type
    #[arg(value_name = "TYPE", value_parser = types(), hide_possible_values = true)]
    pub(crate) task_type: String,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

fn types() -> PossibleValuesParser {
    PossibleValuesParser::new(REFERENCES.iter().map(|reference| reference.r#type))
}
