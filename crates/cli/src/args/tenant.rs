//! Flags of `duly tenant`.

use clap::{Args, Subcommand};
use duly_client::wire::{OwnRetentionView, TenantView};

use super::ClientArgs;
use super::settings::period;

#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// List the tenants that have quotas, settings or a suspension of their own
    List(TenantListArgs),
    /// Show the quotas and settings of a tenant
    Get(TenantNameArgs),
    /// Change the named quotas and settings of a tenant
    Put(TenantPutArgs),
    /// Suspend a tenant: it submits nothing and none of its tasks starts
    Suspend(TenantSuspendArgs),
    /// Let a suspended tenant go on
    Resume(TenantNameArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TenantListArgs {
    /// Number of items
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// Continue after an earlier page
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TenantNameArgs {
    /// Name of the tenant
    #[arg(value_name = "TENANT")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TenantPutArgs {
    /// Name of the tenant
    #[arg(value_name = "TENANT")]
    pub(crate) name: String,
    /// What to change, such as waitingTasks=100000, submitsPerSecond=500, payloadBytes=65536,
    /// schedules=20, workflows=null (no quota), retries=5, retention.success=1d,
    /// retention.failed=forever, retention.cancelled=null (as in the installation) or
    /// redact=/card/number,/cvc
    #[arg(value_name = "KEY=VALUE", value_parser = change)]
    pub(crate) changes: Vec<TenantSetting>,
    /// Note, for people
    #[arg(long)]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TenantSuspendArgs {
    /// Name of the tenant
    #[arg(value_name = "TENANT")]
    pub(crate) name: String,
    /// Reason, for people
    #[arg(long)]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// One quota or setting of a tenant and its new value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TenantSetting {
    WaitingTasks(Option<u32>),
    SubmitsPerSecond(Option<u32>),
    PayloadBytes(Option<u32>),
    Schedules(Option<u32>),
    Workflows(Option<u32>),
    Retries(Option<u32>),
    Success(OwnPeriod),
    Failed(OwnPeriod),
    Cancelled(OwnPeriod),
    Redact(Option<Vec<String>>),
}

/// A period of a tenant's own, perhaps without an end; nothing if it is as in the installation.
type OwnPeriod = Option<Option<f64>>;

impl TenantSetting {
    /// Changes this one and no other.
    pub(crate) fn apply(&self, tenant: &mut TenantView) {
        let (quotas, settings) = (&mut tenant.quotas, &mut tenant.settings);
        let mut retention = settings.retention.unwrap_or_default();
        match self.clone() {
            Self::WaitingTasks(number) => quotas.waiting_tasks = number,
            Self::SubmitsPerSecond(number) => quotas.submits_per_second = number,
            Self::PayloadBytes(number) => quotas.payload_bytes = number,
            Self::Schedules(number) => quotas.schedules = number,
            Self::Workflows(number) => quotas.workflows = number,
            Self::Retries(number) => settings.retries = number,
            Self::Success(period) => retention.success_seconds = period,
            Self::Failed(period) => retention.failed_seconds = period,
            Self::Cancelled(period) => retention.cancelled_seconds = period,
            Self::Redact(paths) => settings.redact = paths,
        }
        settings.retention = (retention != OwnRetentionView::default()).then_some(retention);
    }
}

const KEYS: &str = "waitingTasks, submitsPerSecond, payloadBytes, schedules, workflows, retries, \
    retention.success, retention.failed, retention.cancelled, redact";

fn change(text: &str) -> Result<TenantSetting, String> {
    let (key, value) = text.split_once('=').ok_or("not of the form KEY=VALUE")?;
    Ok(match key {
        "waitingTasks" => TenantSetting::WaitingTasks(number(value)?),
        "submitsPerSecond" => TenantSetting::SubmitsPerSecond(number(value)?),
        "payloadBytes" => TenantSetting::PayloadBytes(number(value)?),
        "schedules" => TenantSetting::Schedules(number(value)?),
        "workflows" => TenantSetting::Workflows(number(value)?),
        "retries" => TenantSetting::Retries(number(value)?),
        "retention.success" => TenantSetting::Success(own_period(value)?),
        "retention.failed" => TenantSetting::Failed(own_period(value)?),
        "retention.cancelled" => TenantSetting::Cancelled(own_period(value)?),
        "redact" if value == "null" => TenantSetting::Redact(None),
        "redact" => {
            let paths = value.split(',').filter(|path| !path.is_empty());
            TenantSetting::Redact(Some(paths.map(str::to_owned).collect()))
        }
        _ => return Err(format!("unknown; use one of {KEYS}")),
    })
}

fn number(text: &str) -> Result<Option<u32>, String> {
    if text == "null" {
        return Ok(None);
    }
    let number = text.parse().map_err(|_| "must be a whole number, or null for none")?;
    Ok(Some(number))
}

fn own_period(text: &str) -> Result<OwnPeriod, String> {
    if text == "null" { Ok(None) } else { period(text).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_as_people_write_them() {
        let paths = vec!["/card/number".to_owned(), "/cvc".to_owned()];
        for (text, expected) in [
            ("waitingTasks=5", TenantSetting::WaitingTasks(Some(5))),
            ("schedules=null", TenantSetting::Schedules(None)),
            ("redact=/card/number,/cvc", TenantSetting::Redact(Some(paths))),
            ("retention.success=1d", TenantSetting::Success(Some(Some(86_400.0)))),
            ("retention.failed=forever", TenantSetting::Failed(Some(None))),
            ("retention.cancelled=null", TenantSetting::Cancelled(None)),
            ("redact=", TenantSetting::Redact(Some(Vec::new()))),
            ("redact=null", TenantSetting::Redact(None)),
        ] {
            assert_eq!(change(text), Ok(expected), "{text}");
        }
        for text in [
            "waitingTasks",
            "waitingTasks=-1",
            "suspended=true",
            "retries=many",
            "retention.success=7",
        ] {
            assert!(change(text).is_err(), "{text}");
        }
    }
}
