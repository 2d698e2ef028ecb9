//! How it went with a task, attempt by attempt.

use duly_core::task::{Attempt, Failure};
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::TaskError;

/// One attempt that has ended: it succeeded, failed, or was lost with its worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "Attempt", as = Attempt))]
pub struct AttemptView {
    /// Which run of the task.
    pub run: u32,
    /// Which attempt of the run. One that was lost with its worker was not charged, and its
    /// number comes again.
    pub attempt: u32,
    /// Under which grant.
    pub epoch: u32,
    /// When its handler started; when a worker got the task, if that is all that is known.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub started_at: Timestamp,
    /// When its end was recorded.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub ended_at: Timestamp,
    /// Who ran it.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub worker: Option<String>,
    /// Why it failed; null if it succeeded.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub error: Option<TaskError>,
    /// The end of what it logged.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub log: Option<String>,
}

/// The attempts of a task that have ended, oldest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = attempts_example))]
pub struct AttemptPage {
    /// The attempts, the last 100 at the most.
    pub items: Vec<AttemptView>,
    /// Always `null`: there is one page.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub next_cursor: Option<String>,
}

impl From<Attempt> for AttemptView {
    fn from(attempt: Attempt) -> Self {
        Self {
            run: attempt.run,
            attempt: attempt.attempt,
            epoch: attempt.epoch,
            started_at: attempt.started_at,
            ended_at: attempt.ended_at,
            worker: attempt.worker,
            error: attempt.error.map(|Failure { code, message }| TaskError { code, message }),
            log: attempt.log.as_deref().map(str::to_owned),
        }
    }
}

#[cfg(feature = "openapi")]
fn attempts_example() -> serde_json::Value {
    serde_json::json!({"items": [{
        "run": 1, "attempt": 1, "epoch": 1,
        "startedAt": "2030-01-31T08:01:00.003Z", "endedAt": "2030-01-31T08:01:30.004Z",
        "worker": "laptop-4711",
        "error": {"code": "TIMEOUT", "message": "the handler ran for more than 30 s"},
        "log": "connecting to mail.example.com\n"
    }], "nextCursor": null})
}
