//! Handlers: the code that runs the attempts of one task type.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::json;
use duly_core::lease::{Fence, Lease};
use duly_core::limits::CHECKPOINT_BYTES;
use duly_core::progress::Progress;
use duly_core::state::Status;
use duly_core::task::Failure;
use duly_core::workflow::request::Members;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::notes::Notes;
use crate::taken_back::TakenBackLeases;

/// Runs the attempts of one type of task.
///
/// A task is granted again after its worker died, so a handler whose effects must happen once
/// makes them conditional on [`Context::idempotency_key`].
#[async_trait]
pub trait Handler: Send + Sync {
    /// Runs one attempt. The future is dropped at an await point when the task's time limit is
    /// over or the worker stops. A panic counts as a failed attempt.
    ///
    /// It must not block its thread, which several attempts may share.
    async fn run(&self, context: Context) -> Result<Output, HandlerError>;

    /// How much longer than the task's time limit an attempt may run, for a handler that enforces
    /// the limit itself and has to clean up then. Must be well below `DEADLINE_SLACK`: the lease
    /// ends that long after the limit.
    fn cleanup_time(&self) -> Duration {
        Duration::ZERO
    }
}

/// The attempt that a handler runs.
#[derive(Clone, Debug)]
pub struct Context {
    lease: Lease,
    fence: Option<Fence>,
    taken_back: TakenBackLeases,
    notes: Arc<Notes>,
}

impl Context {
    /// The attempt made under this lease.
    pub fn new(lease: Lease) -> Self {
        Self::within(lease, None, TakenBackLeases::default(), Arc::default())
    }

    /// The same, in a worker that learns which leases are gone and reports the notes.
    pub(crate) fn within(
        lease: Lease,
        fence: Option<Fence>,
        taken_back: TakenBackLeases,
        notes: Arc<Notes>,
    ) -> Self {
        Self { lease, fence, taken_back, notes }
    }

    /// Adds a line to the attempt's log. Clients can read it about a second later. The last 64 KiB
    /// of the log stay after the attempt.
    pub fn log(&self, line: impl Display) {
        self.notes.log(line);
    }

    /// The end of what was logged and not reported yet.
    pub fn logged(&self) -> Option<Arc<str>> {
        self.notes.logged()
    }

    /// Sets the attempt's progress, in units of its own and with a message for people. This is
    /// cheap: only the last progress of each second is reported.
    pub fn progress(&self, done: u64, total: Option<u64>, message: Option<&str>) {
        let progress = Progress::new(done, total);
        self.notes.progress(match message {
            Some(message) => progress.with_message(message),
            None => progress,
        });
    }

    /// Sets a checkpoint for the task's next attempt, such as the last item that is done: any value
    /// of at most 64 KiB as JSON. The task shows it as `progress.checkpoint`.
    pub fn checkpoint(&self, note: &impl Serialize) -> Result<(), HandlerError> {
        let text = serde_json::to_string(note).map_err(invalid_checkpoint)?;
        if text.len() > CHECKPOINT_BYTES {
            let rule = format!("it has {} bytes, the limit is {CHECKPOINT_BYTES}", text.len());
            return Err(invalid_checkpoint(rule));
        }
        json::check(&text).map_err(invalid_checkpoint)?;
        self.notes.checkpoint(text.into());
        Ok(())
    }

    /// Resolves when the lease is gone: the task was cancelled, or the lease was lost and another
    /// worker gets the task. The handler's result no longer counts; it has a few seconds to clean
    /// up.
    pub async fn cancelled(&self) {
        self.taken_back.wait_for(self.lease.task, self.lease.epoch).await;
    }

    /// Whether the lease is gone: the task was cancelled, or the lease was lost.
    pub fn is_cancelled(&self) -> bool {
        self.taken_back.contains(self.lease.task, self.lease.epoch)
    }

    /// The condition for a write under this lease, for a handler that commits its effect and the
    /// task's success in one transaction of the store's database. `None` if the worker does not
    /// know its session.
    pub fn fence(&self) -> Option<Fence> {
        self.fence
    }

    /// The lease of this attempt.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// The id of the task.
    pub fn task(&self) -> TaskId {
        self.lease.task
    }

    /// The fencing token: a later grant of the same task has a higher one.
    pub fn epoch(&self) -> u32 {
        self.lease.epoch
    }

    /// The run of the task; the first is 1.
    pub fn run(&self) -> u32 {
        self.lease.run
    }

    /// The attempt within the run; the first is 1.
    pub fn attempt(&self) -> u32 {
        self.lease.attempt
    }

    /// The same for every execution of one run, also after a lost lease.
    pub fn idempotency_key(&self) -> String {
        self.lease.idempotency_key()
    }

    /// The tasks that this one depends on, by their key in the workflow or by id, as JSON text:
    /// `taskId`, `status`, `result` and `error` of each. `None` if it depends on none.
    pub fn parents_text(&self) -> Option<&Arc<str>> {
        self.lease.parents.as_ref()
    }

    /// The tasks that this one depends on, by their key in the workflow or by id.
    pub fn parents(&self) -> BTreeMap<String, ParentTask> {
        let text = self.lease.parents.as_deref();
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// The payload as the submitter wrote it: JSON text.
    pub fn payload_text(&self) -> &Arc<str> {
        &self.lease.payload
    }

    /// The payload as a value. The error is a `Fail`, since a retry would get the same payload.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, HandlerError> {
        serde_json::from_str(&self.lease.payload).map_err(HandlerError::invalid_payload)
    }
}

/// A task that another one depends on.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentTask {
    /// Its id.
    pub task_id: TaskId,
    /// How it ended.
    pub status: Status,
    /// Its result: JSON text. `None` if it has none, or if the parents' results are too large together.
    #[serde(default)]
    pub result: Option<Box<RawValue>>,
    /// Why it failed or was cancelled.
    #[serde(default)]
    pub error: Option<Failure>,
}

/// The result of a successful attempt: none or JSON text, and perhaps further tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    text: Option<Arc<str>>,
    then: Option<Members>,
}

impl Output {
    /// No result.
    pub fn none() -> Self {
        Self::default()
    }

    fn of(text: Arc<str>) -> Self {
        Self { text: Some(text), then: None }
    }

    /// Adds tasks, which are stored in the commit of the success: never without it, and once. Those
    /// that depend on none of the others depend on this task. [`crate::then::Tasks`] collects them.
    #[must_use]
    pub fn then(self, tasks: Members) -> Self {
        Self { then: Some(tasks), ..self }
    }

    /// Takes the added tasks out.
    pub fn take_then(&mut self) -> Option<Members> {
        self.then.take()
    }

    /// The value as JSON.
    pub fn json(value: &impl Serialize) -> Result<Self, HandlerError> {
        let text = serde_json::to_string(value).map_err(invalid_result)?;
        Ok(Self::of(text.into()))
    }

    /// JSON text, kept byte for byte.
    pub fn text(text: impl Into<Arc<str>>) -> Result<Self, HandlerError> {
        let text = text.into();
        serde_json::from_str::<&RawValue>(&text).map_err(invalid_result)?;
        Ok(Self::of(text))
    }

    /// The attempt's own payload, which was checked to be JSON when it was submitted.
    pub fn payload_of(context: &Context) -> Self {
        Self::of(Arc::clone(context.payload_text()))
    }

    /// The JSON text.
    pub fn into_text(self) -> Option<Arc<str>> {
        self.text
    }
}

/// Why an attempt failed, and whether another may follow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandlerError {
    /// The next attempt may succeed.
    #[error("{}: {}", .0.code, .0.message)]
    Retry(Failure),
    /// The next attempt may succeed after this time, which replaces the task's back-off.
    #[error("{}: {}; again after {} s", .0.code, .0.message, .1.as_secs_f64())]
    RetryAfter(Failure, Duration),
    /// No attempt can succeed.
    #[error("{}: {}", .0.code, .0.message)]
    Fail(Failure),
    /// It was not tried: another worker gets the task, and no attempt is charged.
    #[error("handed back")]
    Release,
}

impl HandlerError {
    /// A temporary failure. The code is stable and in upper case, the message is for people.
    pub fn retry(code: &str, message: impl Into<String>) -> Self {
        Self::Retry(Failure::new(code, message))
    }

    /// A temporary failure that should be retried after this time.
    pub fn retry_after(after: Duration, code: &str, message: impl Into<String>) -> Self {
        Self::RetryAfter(Failure::new(code, message), after)
    }

    /// A permanent failure. The code is stable and in upper case, the message is for people.
    pub fn fail(code: &str, message: impl Into<String>) -> Self {
        Self::Fail(Failure::new(code, message))
    }

    /// The payload is not valid for the handler.
    pub fn invalid_payload(why: impl ToString) -> Self {
        Self::fail("INVALID_PAYLOAD", why.to_string())
    }
}

fn invalid_checkpoint(why: impl ToString) -> HandlerError {
    HandlerError::fail("INVALID_CHECKPOINT", why.to_string())
}

fn invalid_result(why: serde_json::Error) -> HandlerError {
    HandlerError::fail("INVALID_RESULT", why.to_string())
}
