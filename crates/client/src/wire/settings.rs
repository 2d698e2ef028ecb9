//! The installation's settings.

use duly_core::back_off::{BackOff, Jitter, Strategy};
use duly_core::ports::store::VersionedSettings;
use duly_core::settings::{Retention, Settings};
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::Backoff;

/// The settings of the installation, all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SettingsView {
    /// How many failed attempts may be followed by another, for tasks that do not say.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1000, example = 3))]
    pub retries: u32,
    /// How retries are spaced, as far as a task does not say.
    pub backoff: Backoff,
    /// Handlers that run at once in each server's own worker; as it was started if null.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 10_000))]
    pub worker_concurrency: Option<u32>,
    /// How many workers may die with a task before it is failed; as the server was started if
    /// null.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000))]
    pub loss_limit: Option<u32>,
    /// How long ended tasks are kept.
    pub retention: RetentionView,
    /// What is masked in payloads wherever they are shown but to the worker that runs them.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub redact: Vec<String>,
}

/// How long ended tasks are kept, counted from their end; for ever if null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RetentionView {
    /// Those that succeeded.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 315_360_000, example = 604_800))]
    pub success_seconds: Option<f64>,
    /// Those that failed.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 315_360_000))]
    pub failed_seconds: Option<f64>,
    /// Those that were cancelled.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 315_360_000, example = 604_800))]
    pub cancelled_seconds: Option<f64>,
}

/// One version of the settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SettingsVersion {
    /// Counts the changes; 0 before the first. Also in the header `ETag`, quoted.
    #[cfg_attr(feature = "openapi", schema(example = 7))]
    pub version: u64,
    /// When they became so; null before the first change.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub changed_at: Option<Timestamp>,
    /// Why, for people.
    #[cfg_attr(feature = "openapi", schema(example = "a busy night is coming"))]
    pub comment: Option<String>,
    /// All of them.
    pub settings: SettingsView,
}

/// The settings, and what they come to on the server that answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SettingsAnswer {
    /// The settings.
    #[serde(flatten)]
    pub current: SettingsVersion,
    /// What null means here.
    pub effective: EffectiveSettings,
}

/// What this server goes by where the settings may leave it to its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EffectiveSettings {
    /// Handlers that run at once in its own worker; 0 if it was started without one.
    #[cfg_attr(feature = "openapi", schema(example = 64))]
    pub worker_concurrency: u32,
    /// How many workers may die with a task before it is failed.
    #[cfg_attr(feature = "openapi", schema(example = 10))]
    pub loss_limit: u32,
}

/// What the settings are to be: all of them. What is absent has its default, not the value of
/// before.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = settings_example))]
pub struct SettingsRequest {
    /// Retries of tasks that do not say; 3 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1000))]
    pub retries: Option<u32>,
    /// Back-off, as far as a task does not say; exponential from 1 s, doubled, at most 1 h, with
    /// full jitter, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// Handlers that run at once in each server's own worker; as it was started if null or
    /// absent.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 10_000))]
    pub worker_concurrency: Option<u32>,
    /// How many workers may die with a task before it is failed; as the server was started if
    /// null or absent.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000))]
    pub loss_limit: Option<u32>,
    /// How long ended tasks are kept, each for ever if null; 7 days for those that succeeded or
    /// were cancelled, and for ever for those that failed, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<RetentionView>,
    /// What is masked in payloads wherever they are shown but to the worker that runs them: JSON pointers,
    /// in which `*` stands for every key and every index. Nothing if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_items = 100))]
    pub redact: Option<Vec<String>>,
    /// Why, for people; kept with the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 500))]
    pub comment: Option<String>,
}

/// Which version of the settings to go back to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = rollback_example))]
pub struct RollbackRequest {
    /// The version whose content is to hold again; 0 stands for the defaults.
    pub version: u64,
    /// Why, for people; names the version if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 500))]
    pub comment: Option<String>,
}

/// A page of versions, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SettingsPage {
    /// The versions.
    pub items: Vec<SettingsVersion>,
    /// Where the next page starts; null on the last one.
    pub next_cursor: Option<String>,
}

impl SettingsView {
    /// The request that sets exactly this.
    pub fn into_request(self, comment: Option<String>) -> SettingsRequest {
        SettingsRequest {
            retries: Some(self.retries),
            backoff: Some(self.backoff),
            worker_concurrency: self.worker_concurrency,
            loss_limit: self.loss_limit,
            retention: Some(self.retention),
            redact: Some(self.redact),
            comment,
        }
    }
}

impl From<VersionedSettings> for SettingsVersion {
    fn from(versioned: VersionedSettings) -> Self {
        let VersionedSettings { version, settings, changed_at, comment } = versioned;
        Self { version, changed_at, comment, settings: settings.into() }
    }
}

impl From<Settings> for SettingsView {
    fn from(settings: Settings) -> Self {
        Self {
            retries: settings.retries,
            backoff: settings.back_off.into(),
            worker_concurrency: settings.worker_concurrency.map(within),
            loss_limit: settings.loss_limit,
            retention: settings.retention.into(),
            redact: settings.redact,
        }
    }
}

impl From<Retention> for RetentionView {
    fn from(retention: Retention) -> Self {
        Self {
            success_seconds: retention.success.map(|period| period.as_secs_f64()),
            failed_seconds: retention.failed.map(|period| period.as_secs_f64()),
            cancelled_seconds: retention.cancelled.map(|period| period.as_secs_f64()),
        }
    }
}

impl From<BackOff> for Backoff {
    fn from(policy: BackOff) -> Self {
        let strategy = match policy.strategy {
            Strategy::None => "none",
            Strategy::Fixed => "fixed",
            Strategy::Linear => "linear",
            Strategy::Exponential => "exponential",
        };
        let jitter = match policy.jitter {
            Jitter::None => "none",
            Jitter::Equal => "equal",
            Jitter::Full => "full",
        };
        Self {
            strategy: Some(strategy.to_owned()),
            base_seconds: Some(policy.base.as_secs_f64()),
            factor: Some(policy.factor),
            cap_seconds: Some(policy.cap.as_secs_f64()),
            jitter: Some(jitter.to_owned()),
        }
    }
}

/// A number of handlers, which is never that large.
fn within(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(feature = "openapi")]
fn rollback_example() -> serde_json::Value {
    serde_json::json!({"version": 0, "comment": "back to the defaults"})
}

#[cfg(feature = "openapi")]
fn settings_example() -> serde_json::Value {
    serde_json::json!({
        "retries": 5, "backoff": {"strategy": "exponential", "baseSeconds": 2},
        "workerConcurrency": 32, "lossLimit": null,
        "retention": {"successSeconds": 604_800, "failedSeconds": null, "cancelledSeconds": 86_400},
        "comment": "a busy night is coming"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_for_a_view_says_everything() {
        let view = SettingsView::from(Settings::default());
        let request = serde_json::to_value(view.clone().into_request(None)).unwrap();
        assert_eq!(request, serde_json::to_value(view).unwrap());
        assert_eq!(request["retention"]["failedSeconds"], serde_json::Value::Null);
        assert_eq!(request["retention"]["successSeconds"], 604_800.0);
    }
}
