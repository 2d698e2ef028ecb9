//! `duly notify …`.

use std::path::PathBuf;

use clap::Subcommand;

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum NotifyCommand {
    /// List the mails that `duly dev` has kept in place of sending them, or show one
    Outbox(NotifyOutboxArgs),
    /// Render a template of mails
    Preview(NotifyPreviewArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct NotifyOutboxArgs {
    /// The mail to show: its id or the beginning of it
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Data directory of `duly dev`
    #[arg(long, value_name = "DIR", default_value = ".duly", env = "DULY_DATA")]
    pub(crate) data: PathBuf,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NotifyPreviewArgs {
    /// The name of the template
    #[arg(value_name = "TEMPLATE")]
    pub(crate) template: String,
    /// The values of the template: a JSON object, @FILE, or - for standard input
    #[arg(short, long, value_name = "JSON", default_value = "{}")]
    pub(crate) data: String,
    /// A folder of templates, as `smtp.templates` in the file of `duly serve`
    #[arg(long, value_name = "DIR")]
    pub(crate) templates: Option<PathBuf>,
    /// Print subject, text and HTML as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
