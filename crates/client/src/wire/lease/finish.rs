//! What a worker says of its leases: how they ended, or that they need more time.

use std::sync::Arc;

use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Outcome};
use duly_core::limits::{BACK_OFF, RUN_AHEAD};
use duly_core::ports::store::Extended;
use duly_core::task::Failure;
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::report::LastProgress;
use super::text;
use crate::wire::task::TaskError;
use crate::wire::workflow::ThenView;

/// Characters of an error's code.
const CODE_CHARS: usize = 64;

/// Outcomes to commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = finish_example))]
pub struct FinishRequest {
    /// The session under which the leases were claimed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub session_id: SessionId,
    /// The outcomes.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1000))]
    pub outcomes: Vec<OutcomeView>,
}

/// How one lease ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "Outcome", as = Outcome))]
pub struct OutcomeView {
    /// Which task.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub task_id: TaskId,
    /// Under which grant.
    pub epoch: u32,
    /// How it went.
    pub outcome: OutcomeKind,
    /// What the handler returned, of a success: any JSON up to 1 MiB and 64 levels.
    #[serde(default, with = "text::optional", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub result: Option<Arc<str>>,
    /// Why it failed; required of `retry` and `fail`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TaskError>,
    /// How long the next attempt should wait, where the handler knows it better than the task's
    /// policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 604_800))]
    pub after_seconds: Option<f64>,
    /// How long the handler ran, to the millisecond. The server computes from it when the handler
    /// started; without it, `startedAt` stays null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 34_560_000))]
    pub elapsed_seconds: Option<f64>,
    /// How far the attempt came, if that was not reported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<LastProgress>,
    /// What the attempt logged, or has logged since it was last reported. The last 64 KiB of an
    /// attempt's log are kept, however it went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// How many bytes of the attempt's log come before `log`. What the server has of it already is
    /// not added again.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "openapi", schema(maximum = 9_007_199_254_740_991_u64))]
    pub log_offset: u64,
    /// Tasks that are stored with a success, in the same commit: JSON like [`ThenView`].
    #[serde(default, with = "text::optional", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<ThenView>))]
    pub then: Option<Arc<str>>,
}

/// How an attempt went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum OutcomeKind {
    /// It succeeded.
    Success,
    /// It failed; another attempt may follow.
    Retry,
    /// It failed for good.
    Fail,
    /// It was not tried; nothing is charged.
    Release,
}

/// One answer per outcome, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = finish_answer_example))]
pub struct FinishAnswer {
    /// The answers.
    pub items: Vec<FinishedView>,
}

/// What became of one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "Finished", as = Finished))]
pub struct FinishedView {
    /// Which task.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub task_id: TaskId,
    /// Under which grant.
    pub epoch: u32,
    /// What became of it.
    pub status: LeaseStatus,
}

/// What became of an order for one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum LeaseStatus {
    /// Committed, now or by an earlier call.
    Done,
    /// The lease was taken back before; nothing changed.
    LeaseLost,
    /// There is no such task.
    Unknown,
}

/// Leases that need more time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = extend_example))]
pub struct ExtendRequest {
    /// The session under which the leases were claimed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub session_id: SessionId,
    /// Which.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1000))]
    pub leases: Vec<Extension>,
}

/// One lease that needs more time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Extension {
    /// Which task.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub task_id: TaskId,
    /// Under which grant.
    pub epoch: u32,
    /// How long it may run from now on.
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0, maximum = 86_400))]
    pub seconds: f64,
}

/// One answer per lease, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = extend_answer_example))]
pub struct ExtendAnswer {
    /// The answers.
    pub items: Vec<ExtendedView>,
}

/// What became of one extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "Extended", as = Extended))]
pub struct ExtendedView {
    /// Which task.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub task_id: TaskId,
    /// Under which grant.
    pub epoch: u32,
    /// What became of it.
    pub status: LeaseStatus,
    /// When the lease is overdue now; absent if it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub deadline: Option<Timestamp>,
}

impl From<&Finish> for OutcomeView {
    fn from(finish: &Finish) -> Self {
        let error =
            |error: &Failure| TaskError { code: code(&error.code), message: error.message.clone() };
        let mut view = Self {
            task_id: finish.task,
            epoch: finish.epoch,
            outcome: OutcomeKind::Release,
            result: None,
            error: None,
            after_seconds: None,
            elapsed_seconds: finish.ran.map(|ran| super::seconds(ran.min(RUN_AHEAD))),
            progress: finish.progress.as_ref().map(LastProgress::from),
            log: finish.log.as_ref().map(|log| log.text.to_string()),
            log_offset: finish.log.as_ref().map_or(0, |log| log.offset),
            then: finish.added.as_deref().map(|added| ThenView::of(added).to_text()),
        };
        match &finish.outcome {
            Outcome::Success { result } => {
                view.outcome = OutcomeKind::Success;
                view.result.clone_from(result);
            }
            // The wait is drawn where it is committed, so the entropy stays here.
            Outcome::Retry { error: why, entropy: _, after } => {
                view.outcome = OutcomeKind::Retry;
                view.error = Some(error(why));
                view.after_seconds = after.map(|after| super::seconds(after.min(BACK_OFF)));
            }
            Outcome::Fail { error: why } => {
                view.outcome = OutcomeKind::Fail;
                view.error = Some(error(why));
            }
            Outcome::Release => {}
        }
        view
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde asks")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A code as the server takes it: `[A-Z][A-Z0-9_]{0,63}`. An outcome must not be refused, and its
/// task run again, for the spelling of its error.
fn code(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let code: String = text.chars().map(plain).take(CODE_CHARS - 1).collect();
    let starts_well = code.starts_with(|first: char| first.is_ascii_uppercase());
    if starts_well { code } else { format!("E{code}") }
}

impl From<Finished> for LeaseStatus {
    fn from(finished: Finished) -> Self {
        match finished {
            Finished::Done => Self::Done,
            Finished::LeaseLost => Self::LeaseLost,
            Finished::Unknown => Self::Unknown,
        }
    }
}

impl From<LeaseStatus> for Finished {
    fn from(status: LeaseStatus) -> Self {
        match status {
            LeaseStatus::Done => Self::Done,
            LeaseStatus::LeaseLost => Self::LeaseLost,
            LeaseStatus::Unknown => Self::Unknown,
        }
    }
}

impl ExtendedView {
    /// What became of the extension of this lease.
    pub fn new(task_id: TaskId, epoch: u32, extended: Extended) -> Self {
        let (status, deadline) = match extended {
            Extended::Done { deadline } => (LeaseStatus::Done, Some(deadline)),
            Extended::LeaseLost => (LeaseStatus::LeaseLost, None),
            Extended::Unknown => (LeaseStatus::Unknown, None),
        };
        Self { task_id, epoch, status, deadline }
    }
}

#[cfg(feature = "openapi")]
fn finish_example() -> serde_json::Value {
    serde_json::json!({
        "sessionId": "01920000-0000-7000-8000-00000000000a",
        "outcomes": [
            {"taskId": "01920000-0000-7000-8000-000000000000", "epoch": 1,
             "outcome": "success", "result": {"messageId": "m-1"}},
            {"taskId": "01920000-0000-7000-8000-000000000001", "epoch": 2, "outcome": "retry",
             "error": {"code": "SMTP_BUSY", "message": "the server is busy"},
             "afterSeconds": 30, "log": "connected to mx.example.com\n", "logOffset": 120}
        ]
    })
}

#[cfg(feature = "openapi")]
fn finish_answer_example() -> serde_json::Value {
    serde_json::json!({"items": [
        {"taskId": "01920000-0000-7000-8000-000000000000", "epoch": 1, "status": "DONE"},
        {"taskId": "01920000-0000-7000-8000-000000000001", "epoch": 2, "status": "LEASE_LOST"}
    ]})
}

#[cfg(feature = "openapi")]
fn extend_example() -> serde_json::Value {
    serde_json::json!({
        "sessionId": "01920000-0000-7000-8000-00000000000a",
        "leases": [{"taskId": "01920000-0000-7000-8000-000000000000", "epoch": 1, "seconds": 60}]
    })
}

#[cfg(feature = "openapi")]
fn extend_answer_example() -> serde_json::Value {
    serde_json::json!({"items": [
        {"taskId": "01920000-0000-7000-8000-000000000000", "epoch": 1, "status": "DONE",
         "deadline": "2030-01-31T08:02:40.003Z"}
    ]})
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use duly_core::log::LogChunk;

    use super::*;

    fn said(outcome: Outcome, log: Option<LogChunk>) -> String {
        let task = TaskId::mint(Timestamp::from_millis(1), 0, 0);
        let finish = Finish { log, ..Finish::new(task, 3, outcome) };
        let text = serde_json::to_string(&OutcomeView::from(&finish)).unwrap();
        let read: OutcomeView = serde_json::from_str(&text).unwrap();
        assert_eq!(read, OutcomeView::from(&finish));
        text.replace(&task.to_string(), "T")
    }

    #[test]
    fn a_code_is_spelled_as_the_server_takes_it() {
        let long = "x".repeat(100);
        for (given, sent) in [
            ("HTTP_STATUS", "HTTP_STATUS"),
            ("not found!", "NOT_FOUND_"),
            ("404", "E404"),
            ("", "E"),
            (&long, &"X".repeat(63)),
        ] {
            assert_eq!(code(given), sent);
        }
    }

    #[test]
    fn outcomes_say_what_they_have_to_and_no_more() {
        let error = Failure::new("X", "y");
        let result = Some(r#"{"a": 1.0}"#.into());
        let after = Some(Duration::from_millis(1500));
        for (outcome, text) in [
            (Outcome::Success { result }, r#""outcome":"success","result":{"a": 1.0}"#),
            (Outcome::Success { result: None }, r#""outcome":"success""#),
            (
                Outcome::Retry { error: error.clone(), entropy: 7, after },
                r#""outcome":"retry","error":{"code":"X","message":"y"},"afterSeconds":1.5"#,
            ),
            (Outcome::Fail { error }, r#""outcome":"fail","error":{"code":"X","message":"y"}"#),
            (Outcome::Release, r#""outcome":"release""#),
        ] {
            assert_eq!(said(outcome, None), format!(r#"{{"taskId":"T","epoch":3,{text}}}"#));
        }
        for (offset, end) in [(0, r#","log":"a\n"}"#), (7, r#","log":"a\n","logOffset":7}"#)] {
            let log = LogChunk { offset, text: "a\n".into() };
            assert!(said(Outcome::Release, Some(log)).ends_with(end));
        }
    }
}
