//! What people order for one task.

use std::collections::BTreeMap;

use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Why a task is cancelled.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CancelRequest {
    /// For people; kept as the task's error message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 500, example = "ordered by mistake"))]
    pub reason: Option<String>,
}

/// How a task is run again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReplayRequest {
    /// What the handler gets instead of the payload it had; the same if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub payload: Option<Box<RawValue>>,
    /// Whether all that depends on the task runs again after it. Not together with `payload`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub downstream: bool,
}

/// What is to change about a waiting task; what is absent stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = edit_example))]
pub struct EditRequest {
    /// What the handler gets: any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub payload: Option<Box<RawValue>>,
    /// 0 to 9; each level is worth a minute of waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(maximum = 9))]
    pub priority: Option<u8>,
    /// Start this much later than now; not with `runAt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<f64>,
    /// Start at this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub run_at: Option<Timestamp>,
    /// How many failed attempts may be followed by another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// How long the handler may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// Searchable marks, instead of those it has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

#[cfg(feature = "openapi")]
fn edit_example() -> serde_json::Value {
    serde_json::json!({"priority": 9, "delaySeconds": 60})
}
