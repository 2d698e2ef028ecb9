//! The answer to a batch of submits.

use duly_core::id::TaskId;
use duly_core::state::Status;
use serde::{Deserialize, Serialize};

use super::Problem;

/// One answer per item of a batch, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = batch_example))]
pub struct BatchAnswer {
    /// The answers.
    pub items: Vec<BatchItem>,
}

/// What became of one item of a batch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum BatchItem {
    /// The task was taken, now or by an earlier submit with its idempotency key.
    Accepted {
        /// The item's place in the batch, from 0.
        index: usize,
        /// The task's name.
        #[serde(rename = "taskId")]
        #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
        task_id: TaskId,
        /// Where the task is in its life.
        #[cfg_attr(feature = "openapi", schema(schema_with = super::task::status_schema))]
        status: Status,
        /// Whether an earlier submit with its idempotency key had made the task; absent otherwise.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        replayed: bool,
    },
    /// The item was not taken.
    Refused {
        /// The item's place in the batch, from 0.
        index: usize,
        /// Why.
        problem: Problem,
    },
}

#[cfg(feature = "openapi")]
fn batch_example() -> serde_json::Value {
    serde_json::json!({"items": [
        {"index": 0, "taskId": "01920000-0000-7000-8000-000000000000", "status": "PENDING"},
        {"index": 1, "problem": {
            "type": "urn:duly:error:INVALID_FIELDS", "title": "Some fields are not valid",
            "status": 422, "code": "INVALID_FIELDS", "detail": "/type: is required",
            "errors": [{"pointer": "/type", "code": "REQUIRED", "detail": "is required"}]
        }}
    ]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_item_are_told_apart() {
        let text = r#"{"items":[
            {"index":0,"taskId":"01920000-0000-7000-8000-000000000000","status":"PENDING"},
            {"index":1,"problem":{"type":"urn:duly:error:X","title":"x","status":422,"code":"X",
             "detail":"y"}}]}"#;
        let answer: BatchAnswer = serde_json::from_str(text).unwrap();
        assert!(matches!(answer.items[0], BatchItem::Accepted { index: 0, .. }));
        assert!(matches!(answer.items[1], BatchItem::Refused { index: 1, .. }));
    }
}
