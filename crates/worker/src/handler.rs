//! What a handler is: the code that runs one attempt of a task of its type.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::json;
use duly_core::lease::{Fence, Lease};
use duly_core::limits::CHECKPOINT_BYTES;
use duly_core::progress::Progress;
use duly_core::task::Failure;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::cancels::Cancels;
use crate::notes::Notes;

/// Runs the attempts of one type of task.
///
/// A lease may be granted again after its worker died, so a handler whose effects must happen
/// once makes them conditional on [`Context::idempotency_key`].
#[async_trait]
pub trait Handler: Send + Sync {
    /// Runs one attempt. The call is dropped at an await point when the task's time is up or the
    /// worker stops; a panic counts as a failed attempt.
    ///
    /// It must not block its thread: several short attempts may share one.
    async fn run(&self, context: Context) -> Result<Output, HandlerError>;

    /// How much longer than the task's time limit a call may take: for a handler that keeps the
    /// limit itself and has something to wind up then. Well below `DEADLINE_SLACK`, since the
    /// lease ends at that time after the limit.
    fn wind_up(&self) -> Duration {
        Duration::ZERO
    }
}

/// What a handler knows of the attempt it runs.
#[derive(Clone, Debug)]
pub struct Context {
    lease: Lease,
    fence: Option<Fence>,
    cancels: Cancels,
    notes: Arc<Notes>,
}

impl Context {
    /// The attempt made under this lease.
    pub fn new(lease: Lease) -> Self {
        Self::within(lease, None, Cancels::default(), Arc::default())
    }

    /// The same, in a worker that hears of leases that are gone and passes the notes on.
    pub(crate) fn within(
        lease: Lease,
        fence: Option<Fence>,
        cancels: Cancels,
        notes: Arc<Notes>,
    ) -> Self {
        Self { lease, fence, cancels, notes }
    }

    /// Adds a line to the attempt's log. Others can read it about a second later, and its last
    /// 64 KiB stay when the attempt is over.
    pub fn log(&self, line: impl Display) {
        self.notes.log(line);
    }

    /// The end of what was logged and not reported yet.
    pub fn logged(&self) -> Option<Arc<str>> {
        self.notes.logged()
    }

    /// Says how far the attempt is, in steps of its own and with a word for people. Costs nearly
    /// nothing: only the last word of each second is passed on.
    pub fn progress(&self, done: u64, total: Option<u64>, message: Option<&str>) {
        let progress = Progress::new(done, total);
        self.notes.progress(match message {
            Some(message) => progress.with_message(message),
            None => progress,
        });
    }

    /// Leaves a note for the task's next attempt, such as how far it is safe to skip: any value of
    /// at most 64 KiB as JSON. It shows as `progress.checkpoint` of the task.
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

    /// Resolves when the lease is gone: the task was cancelled, or the lease was lost and
    /// somebody else gets the task. Nothing that the handler returns counts from then on; it has
    /// a few seconds to wind up.
    pub async fn cancelled(&self) {
        self.cancels.of(self.lease.task, self.lease.epoch).await;
    }

    /// Whether the lease is gone: the task was cancelled, or the lease was lost.
    pub fn is_cancelled(&self) -> bool {
        self.cancels.holds(self.lease.task, self.lease.epoch)
    }

    /// What a write under this lease is conditional on, for a handler that commits its effect and
    /// the task's success in one transaction of the store's database. Nothing where the worker cannot
    /// tell who holds its leases.
    pub fn fence(&self) -> Option<Fence> {
        self.fence
    }

    /// The lease itself.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Which task.
    pub fn task(&self) -> TaskId {
        self.lease.task
    }

    /// The fencing token: a later grant of the same task has a higher one.
    pub fn epoch(&self) -> u32 {
        self.lease.epoch
    }

    /// Which run of the task.
    pub fn run(&self) -> u32 {
        self.lease.run
    }

    /// Which attempt of the run; the first is 1.
    pub fn attempt(&self) -> u32 {
        self.lease.attempt
    }

    /// The same for every execution of one run.
    pub fn idempotency_key(&self) -> String {
        self.lease.idempotency_key()
    }

    /// The payload as the submitter wrote it: JSON text.
    pub fn payload_text(&self) -> &Arc<str> {
        &self.lease.payload
    }

    /// The payload as a value. One that does not fit never will: the error is a `Fail`.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, HandlerError> {
        serde_json::from_str(&self.lease.payload).map_err(HandlerError::invalid_payload)
    }
}

/// What a successful attempt leaves behind: nothing, or JSON text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output(Option<Arc<str>>);

impl Output {
    /// No result.
    pub fn none() -> Self {
        Self(None)
    }

    /// The value as JSON.
    pub fn json(value: &impl Serialize) -> Result<Self, HandlerError> {
        let text = serde_json::to_string(value).map_err(invalid_result)?;
        Ok(Self(Some(text.into())))
    }

    /// JSON text, kept as it is spelled.
    pub fn text(text: impl Into<Arc<str>>) -> Result<Self, HandlerError> {
        let text = text.into();
        serde_json::from_str::<&RawValue>(&text).map_err(invalid_result)?;
        Ok(Self(Some(text)))
    }

    /// The attempt's own payload, which was found to be JSON when it was submitted.
    pub fn payload_of(context: &Context) -> Self {
        Self(Some(Arc::clone(context.payload_text())))
    }

    /// The JSON text.
    pub fn into_text(self) -> Option<Arc<str>> {
        self.0
    }
}

/// Why an attempt failed, and whether another may follow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandlerError {
    /// The next attempt may succeed.
    #[error("{}: {}", .0.code, .0.message)]
    Retry(Failure),
    /// The next attempt may succeed after this time, which counts instead of the task's policy.
    #[error("{}: {}; again after {} s", .0.code, .0.message, .1.as_secs_f64())]
    RetryAfter(Failure, Duration),
    /// No attempt can succeed.
    #[error("{}: {}", .0.code, .0.message)]
    Fail(Failure),
    /// It was not tried: somebody else should have the task, and nothing is charged.
    #[error("handed back")]
    Release,
}

impl HandlerError {
    /// A failure that may pass. The code is stable and in upper case, the message for people.
    pub fn retry(code: &str, message: impl Into<String>) -> Self {
        Self::Retry(Failure::new(code, message))
    }

    /// A failure that may have passed after this time.
    pub fn retry_after(after: Duration, code: &str, message: impl Into<String>) -> Self {
        Self::RetryAfter(Failure::new(code, message), after)
    }

    /// A failure that stays. The code is stable and in upper case, the message for people.
    pub fn fail(code: &str, message: impl Into<String>) -> Self {
        Self::Fail(Failure::new(code, message))
    }

    /// The payload is not what the handler takes.
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
