//! Flags of `duly settings`.

use std::time::Duration;

use clap::{Args, Subcommand};
use duly_client::wire::SettingsView;
use jiff::{Span, SpanRelativeTo};

use super::ClientArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Show the settings of the installation
    Get(SettingsGetArgs),
    /// Change the named settings at once, without a restart
    Set(SettingsSetArgs),
    /// List the versions of the settings, newest first
    History(SettingsHistoryArgs),
    /// Restore an older version; 0 restores the defaults
    Rollback(SettingsRollbackArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SettingsGetArgs {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SettingsSetArgs {
    /// Settings to change, such as retries=5, backoff.strategy=fixed, backoff.baseSeconds=2,
    /// workerConcurrency=32, lossLimit=null (as the server was started), retention.success=7d,
    /// retention.failed=forever or redact=/card/number,/cvc
    #[arg(value_name = "KEY=VALUE", required = true, value_parser = setting)]
    pub(crate) changes: Vec<Setting>,
    /// Comment, for people
    #[arg(long)]
    pub(crate) comment: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SettingsHistoryArgs {
    /// Number of items
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) limit: u32,
    /// Continue after an earlier page
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SettingsRollbackArgs {
    /// The version to restore
    #[arg(value_name = "VERSION")]
    pub(crate) version: u64,
    /// Comment, for people
    #[arg(long)]
    pub(crate) comment: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// One setting and its new value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Setting {
    Retries(u32),
    Strategy(String),
    BaseSeconds(f64),
    Factor(f64),
    CapSeconds(f64),
    Jitter(String),
    WorkerConcurrency(Option<u32>),
    LossLimit(Option<u32>),
    Success(Option<f64>),
    Failed(Option<f64>),
    Cancelled(Option<f64>),
    Redact(Vec<String>),
}

impl Setting {
    /// Changes this setting and no other.
    pub(crate) fn apply(&self, settings: &mut SettingsView) {
        let SettingsView { retries, backoff, worker_concurrency, loss_limit, retention, redact } =
            settings;
        match self.clone() {
            Self::Retries(number) => *retries = number,
            Self::Strategy(word) => backoff.strategy = Some(word),
            Self::BaseSeconds(seconds) => backoff.base_seconds = Some(seconds),
            Self::Factor(factor) => backoff.factor = Some(factor),
            Self::CapSeconds(seconds) => backoff.cap_seconds = Some(seconds),
            Self::Jitter(word) => backoff.jitter = Some(word),
            Self::WorkerConcurrency(number) => *worker_concurrency = number,
            Self::LossLimit(number) => *loss_limit = number,
            Self::Success(period) => retention.success_seconds = period,
            Self::Failed(period) => retention.failed_seconds = period,
            Self::Cancelled(period) => retention.cancelled_seconds = period,
            Self::Redact(paths) => *redact = paths,
        }
    }
}

const KEYS: &str = "retries, backoff.strategy, backoff.baseSeconds, backoff.factor, \
    backoff.capSeconds, backoff.jitter, workerConcurrency, lossLimit, retention.success, \
    retention.failed, retention.cancelled, redact";

fn setting(text: &str) -> Result<Setting, String> {
    let (key, value) = text.split_once('=').ok_or("not of the form KEY=VALUE")?;
    Ok(match key {
        "retries" => Setting::Retries(number(value)?),
        "backoff.strategy" => Setting::Strategy(value.to_owned()),
        "backoff.baseSeconds" => Setting::BaseSeconds(seconds(value)?),
        "backoff.factor" => Setting::Factor(seconds(value)?),
        "backoff.capSeconds" => Setting::CapSeconds(seconds(value)?),
        "backoff.jitter" => Setting::Jitter(value.to_owned()),
        "workerConcurrency" => Setting::WorkerConcurrency(number_or_null(value)?),
        "lossLimit" => Setting::LossLimit(number_or_null(value)?),
        "retention.success" => Setting::Success(period(value)?),
        "retention.failed" => Setting::Failed(period(value)?),
        "retention.cancelled" => Setting::Cancelled(period(value)?),
        "redact" => {
            let paths = value.split(',').filter(|path| !path.is_empty());
            Setting::Redact(paths.map(str::to_owned).collect())
        }
        _ => return Err(format!("unknown setting; use one of {KEYS}")),
    })
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "must be a whole number".to_owned())
}

fn number_or_null(text: &str) -> Result<Option<u32>, String> {
    if text == "null" {
        return Ok(None);
    }
    let number = number(text)
        .map_err(|_| "must be a whole number, or null for the value the server was started with")?;
    Ok(Some(number))
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "must be a number".to_owned())
}

pub(super) fn period(text: &str) -> Result<Option<f64>, String> {
    if matches!(text, "forever" | "null") {
        return Ok(None);
    }
    // A day has 24 hours here: retention does not follow a calendar.
    let span: Option<Span> = text.parse().ok();
    let duration = span.and_then(|span| {
        let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
        Duration::try_from(duration).ok()
    });
    let seconds = duration.map(|duration| duration.as_secs_f64());
    seconds.map(Some).ok_or_else(|| "not a period, such as 12h, 7d or forever".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_people_write_them() {
        for (text, expected) in [
            ("retries=5", Setting::Retries(5)),
            ("backoff.strategy=fixed", Setting::Strategy("fixed".to_owned())),
            ("backoff.baseSeconds=0.5", Setting::BaseSeconds(0.5)),
            ("workerConcurrency=32", Setting::WorkerConcurrency(Some(32))),
            ("workerConcurrency=null", Setting::WorkerConcurrency(None)),
            ("lossLimit=3", Setting::LossLimit(Some(3))),
            ("retention.success=7d", Setting::Success(Some(604_800.0))),
            ("retention.failed=1d12h", Setting::Failed(Some(129_600.0))),
            ("retention.cancelled=forever", Setting::Cancelled(None)),
            ("redact=/a,/b/*", Setting::Redact(vec!["/a".to_owned(), "/b/*".to_owned()])),
            ("redact=", Setting::Redact(Vec::new())),
        ] {
            assert_eq!(setting(text), Ok(expected), "{text}");
        }
        for text in [
            "retries",
            "retries=",
            "retries=null",
            "retries=1.5",
            "Retries=5",
            "backoff=fixed",
            "backoff.baseSeconds=inf",
            "workerConcurrency=-1",
            "retention.success=7",
            "retention.success=-1d",
            "retention.success=1 month",
        ] {
            assert!(setting(text).is_err(), "{text}");
        }
    }
}
