//! What a submit asks for.

use std::collections::BTreeMap;

use duly_core::id::WorkflowId;
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{DependencyView, NeededTask};

/// A task to submit. Only `type` is required; `null` means the same as leaving a field out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = submit_example))]
pub struct SubmitRequest {
    /// Names the handler: `[A-Za-z0-9][A-Za-z0-9._-]{0,99}`, case-sensitive, not beginning with
    /// `duly.`.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"))]
    pub r#type: String,
    /// What the handler gets: any JSON up to 1 MiB and 64 levels, kept byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub payload: Option<Box<RawValue>>,
    /// Where the task waits; `default` if absent. The same rule as for `type`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"))]
    pub queue: Option<String>,
    /// 0 to 9; each level is worth a minute of waiting. 5 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9))]
    pub priority: Option<u8>,
    /// Start this many seconds from now, to the millisecond. Not together with `runAt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 34_560_000))]
    pub delay_seconds: Option<f64>,
    /// Start at this instant (RFC 3339); one in the past means now, one more than 400 days
    /// ahead is refused. Not together with `delaySeconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub run_at: Option<Timestamp>,
    /// How many failed attempts may be followed by another; as the settings say if absent, 3 to
    /// begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1000))]
    pub retries: Option<u32>,
    /// How retries are spaced; as the settings say if absent, exponential from 1 s, doubled, at
    /// most 1 h, with full jitter to begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// How long the handler may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0, maximum = 86_400))]
    pub timeout_seconds: Option<f64>,
    /// Spreads the start at random over this many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400))]
    pub jitter_seconds: Option<f64>,
    /// Tasks that must end first: ids of tasks that must succeed, or `{taskId, on}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_items = 10_000))]
    pub dependencies: Vec<DependencyView>,
    /// Only in a workflow, and not together with `dependencies`: tasks of the same workflow that must
    /// end first, as keys of tasks that must succeed, or `{task, on}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_items = 10_000))]
    pub depends_on: Vec<NeededTask>,
    /// A workflow that runs, which the task joins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = "uuid"))]
    pub workflow_id: Option<WorkflowId>,
    /// Whether strings in the payload hold expressions such as `{{ parents.fetch.result.url }}`. They
    /// are replaced when a worker gets the task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub render: bool,
    /// Whom to tell of the outcome. Not supported yet: refused with `UNSUPPORTED_FIELD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub notify: Option<Box<RawValue>>,
    /// Searchable marks, at most 32; keys and values up to 200 characters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Makes a repeated submit answer with the first one's task, for 24 hours. The header
    /// `Idempotency-Key` says the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 255))]
    pub idempotency_key: Option<String>,
}

impl SubmitRequest {
    /// A task of this type, with every default.
    pub fn new(task_type: impl Into<String>) -> Self {
        Self { r#type: task_type.into(), ..Self::default() }
    }
}

/// How the retries of a task are spaced. What a task leaves out is as the settings say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Backoff {
    /// `none`, `fixed`, `linear` or `exponential`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^(none|fixed|linear|exponential)$"))]
    pub strategy: Option<String>,
    /// The first wait; 1 to begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 604_800))]
    pub base_seconds: Option<f64>,
    /// What an exponential wait is multiplied by each time; 2 to begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 100))]
    pub factor: Option<f64>,
    /// The longest wait; 3600 to begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 604_800))]
    pub cap_seconds: Option<f64>,
    /// `none`, `equal` (half of the wait is drawn) or `full` (all of it is).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^(none|equal|full)$"))]
    pub jitter: Option<String>,
}

#[cfg(feature = "openapi")]
fn submit_example() -> serde_json::Value {
    serde_json::json!({
        "type": "echo", "payload": {"hello": "world"}, "retries": 3, "labels": {"customer": "42"}
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_not_sent() {
        let text = serde_json::to_string(&SubmitRequest::new("email")).unwrap();
        assert_eq!(text, r#"{"type":"email"}"#);
    }

    #[test]
    fn the_example_of_the_documentation_is_read() {
        let text =
            r#"{"type":"email","payload":{},"delaySeconds":60,"retries":3,"dependencies":[]}"#;
        let request: SubmitRequest = serde_json::from_str(text).unwrap();
        assert_eq!(request.delay_seconds, Some(60.0));
        assert_eq!(request.payload.unwrap().get(), "{}");
    }
}
