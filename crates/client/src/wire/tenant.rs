//! Tenants: their limits, and what they set for themselves.

use duly_core::settings::{Kept, OwnRetention};
use duly_core::tenant::{Quotas, TenantRecord, TenantSettings};
use duly_core::time::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use super::Backoff;

/// How much a tenant may use; null where only the limits of the installation hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotasView {
    /// Tasks that wait or are blocked, by a count that is about a second old.
    pub waiting_tasks: Option<u32>,
    /// Tasks submitted in a second, on each node.
    pub submits_per_second: Option<u32>,
    /// Bytes of one payload.
    pub payload_bytes: Option<u32>,
    /// Schedules.
    pub schedules: Option<u32>,
    /// Workflows that have not ended.
    pub workflows: Option<u32>,
}

/// Settings that a tenant has otherwise than the installation; null where it has not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TenantSettingsView {
    /// Retries of tasks that do not say.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1000))]
    pub retries: Option<u32>,
    /// Back-off, as far as a task does not say.
    pub backoff: Option<Backoff>,
    /// How long ended tasks are kept.
    pub retention: Option<OwnRetentionView>,
    /// What is masked in payloads wherever they are shown but to the worker that runs them: JSON pointers,
    /// in which `*` stands for every key and every index.
    #[cfg_attr(feature = "openapi", schema(max_items = 100))]
    pub redact: Option<Vec<String>>,
}

/// How long a tenant's ended tasks are kept, counted from their end: for ever if null, as in the
/// installation if absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OwnRetentionView {
    /// Those that succeeded.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(
        feature = "openapi",
        schema(value_type = Option<f64>, minimum = 1, maximum = 315_360_000, example = 86_400)
    )]
    pub success_seconds: Option<Option<f64>>,
    /// Those that failed.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(
        feature = "openapi",
        schema(value_type = Option<f64>, minimum = 1, maximum = 315_360_000)
    )]
    pub failed_seconds: Option<Option<f64>>,
    /// Those that were cancelled.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[cfg_attr(
        feature = "openapi",
        schema(value_type = Option<f64>, minimum = 1, maximum = 315_360_000)
    )]
    pub cancelled_seconds: Option<Option<f64>>,
}

/// A field that is there, perhaps with null.
fn given<'a, D: Deserializer<'a>>(field: D) -> Result<Option<Option<f64>>, D::Error> {
    Option::deserialize(field).map(Some)
}

/// What is recorded about a tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = tenant_example))]
pub struct TenantView {
    /// Its name.
    pub tenant: String,
    /// Counts the changes, from 1. Also in the header `ETag`, quoted.
    pub version: u64,
    /// Since when it is suspended; `null` if it is not.
    #[cfg_attr(
        feature = "openapi",
        schema(required = true, value_type = Option<String>, format = DateTime)
    )]
    pub suspended_at: Option<Timestamp>,
    /// For people.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub note: Option<String>,
    /// Its limits.
    pub quotas: QuotasView,
    /// What it sets for itself.
    pub settings: TenantSettingsView,
    /// When the record was created.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
}

/// What is to be recorded about a tenant. What is absent holds as in the installation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = tenant_request_example))]
pub struct TenantRequest {
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 500))]
    pub note: Option<String>,
    /// Its limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quotas: Option<QuotasView>,
    /// What it sets for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<TenantSettingsView>,
}

/// Some records, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TenantPage {
    /// The records.
    pub items: Vec<TenantView>,
    /// Give it as `cursor` to get the next page; `null` on the last one.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub next_cursor: Option<String>,
}

impl From<TenantRecord> for TenantView {
    fn from(record: TenantRecord) -> Self {
        Self {
            tenant: record.name.to_string(),
            version: record.version,
            suspended_at: record.suspended_at,
            note: record.note,
            quotas: record.quotas.into(),
            settings: record.settings.into(),
            created_at: record.created_at,
        }
    }
}

impl From<Quotas> for QuotasView {
    fn from(quotas: Quotas) -> Self {
        let Quotas { waiting_tasks, submits_per_second, payload_bytes, schedules, workflows } =
            quotas;
        Self { waiting_tasks, submits_per_second, payload_bytes, schedules, workflows }
    }
}

impl From<OwnRetention> for OwnRetentionView {
    fn from(retention: OwnRetention) -> Self {
        let OwnRetention { success, failed, cancelled } = retention;
        let seconds =
            |kept: Option<Kept>| kept.map(|kept| kept.period().map(|period| period.as_secs_f64()));
        Self {
            success_seconds: seconds(success),
            failed_seconds: seconds(failed),
            cancelled_seconds: seconds(cancelled),
        }
    }
}

impl From<TenantSettings> for TenantSettingsView {
    fn from(settings: TenantSettings) -> Self {
        Self {
            retries: settings.retries,
            backoff: settings.back_off.map(Into::into),
            retention: settings.retention.map(Into::into),
            redact: settings.redact,
        }
    }
}

#[cfg(feature = "openapi")]
fn tenant_request_example() -> serde_json::Value {
    serde_json::json!({
        "note": "trial until June",
        "quotas": {"waitingTasks": 100_000, "submitsPerSecond": 500},
        "settings": {"retries": 5, "retention": {"successSeconds": 86_400},
            "redact": ["/card/number"]}
    })
}

#[cfg(feature = "openapi")]
fn tenant_example() -> serde_json::Value {
    serde_json::json!({
        "tenant": "acme", "version": 3, "suspendedAt": null, "note": "trial until June",
        "quotas": {"waitingTasks": 100_000, "submitsPerSecond": 500, "payloadBytes": null,
            "schedules": null, "workflows": null},
        "settings": {"retries": 5, "backoff": null, "retention": {"successSeconds": 86_400},
            "redact": ["/card/number"]},
        "createdAt": "2030-01-31T08:00:00Z"
    })
}
