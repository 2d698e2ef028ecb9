//! Flags of `duly audit`.

use super::ClientArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    /// Only what this actor did, such as key:ID, token:SUBJECT or anonymous
    #[arg(long)]
    pub(crate) actor: Option<String>,
    /// Only this action, such as task.cancel, or all on a noun, such as task
    #[arg(long)]
    pub(crate) action: Option<String>,
    /// Only what was done to this id or name
    #[arg(long, value_name = "ID")]
    pub(crate) target: Option<String>,
    /// Only what was done since then: an instant, or a time ago such as 24h
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Include other tenants and the installation itself, such as its settings
    #[arg(long)]
    pub(crate) installation: bool,
    /// Number of items
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// Continue after an earlier page
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}
