//! How far a task is, as readers see it.

use duly_core::progress::ReportedProgress;
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::task::verbatim;

/// What the attempts of a task's run have last said of their work. It stays through retries and
/// after the end; a replay starts from nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "Progress", as = Progress, example = progress_example))]
pub struct ProgressView {
    /// Steps that are done, in the handler's own unit.
    pub done: u64,
    /// Steps there are, where the handler knows.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub total: Option<u64>,
    /// How much of the whole is done; 100 only when all of it is.
    #[cfg_attr(feature = "openapi", schema(required = true, maximum = 100))]
    pub percent: Option<u8>,
    /// What the handler is at, for people.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub message: Option<String>,
    /// The handler's note for its next attempt: any JSON.
    #[cfg_attr(feature = "openapi", schema(required = true, value_type = Option<serde_json::Value>))]
    pub checkpoint: Option<Box<RawValue>>,
    /// When it was last said.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub updated_at: Timestamp,
}

impl From<ReportedProgress> for ProgressView {
    fn from(reported: ReportedProgress) -> Self {
        let ReportedProgress { progress, at } = reported;
        Self {
            percent: progress.percent(),
            done: progress.done,
            total: progress.total,
            message: progress.message,
            checkpoint: progress.checkpoint.as_deref().map(verbatim),
            updated_at: at,
        }
    }
}

#[cfg(feature = "openapi")]
fn progress_example() -> serde_json::Value {
    serde_json::json!({
        "done": 3, "total": 4, "percent": 75, "message": "write the report",
        "checkpoint": {"row": 1200}, "updatedAt": "2030-01-31T08:01:03.000Z"
    })
}
