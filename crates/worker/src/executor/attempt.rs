//! Runs attempts: from a lease to its outcome, also if the handler panics or overruns its time.

use std::any::Any;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use duly_core::json;
use duly_core::lease::{Fence, Finish, Lease, Outcome};
use duly_core::limits::RESULT_BYTES;
use duly_core::ports::random::Random;
use duly_core::ports::work_source::WorkSource;
use duly_core::task::Failure;
use duly_core::workflow::request::{Added, Members};
use futures_util::FutureExt;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::attempt_trace::AttemptTrace;
use crate::handler::{Context, Handler, HandlerError, Output};
use crate::notes::{Notes, ReportQueue};
use crate::registry::Registry;
use crate::taken_back::TakenBackLeases;

/// How long a handler may run after its task was cancelled.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// An attempt that is over.
#[derive(Debug)]
pub(super) struct EndedAttempt {
    pub(super) finish: Finish,
    pub(super) took: Duration,
}

/// Starts attempts and holds what they share.
pub(super) struct AttemptRunner {
    pub(super) registry: Registry,
    pub(super) source: Arc<dyn WorkSource>,
    pub(super) random: Arc<dyn Random>,
    pub(super) tracker: TaskTracker,
    /// Stops attempts at their next await point and releases their leases.
    pub(super) abort: CancellationToken,
    /// The attempts that have something to report.
    pub(super) queue: Arc<ReportQueue>,
    pub(super) taken_back: TakenBackLeases,
    /// Receives ended attempts. It needs no bound, since the slots limit how many run.
    pub(super) ended: UnboundedSender<Vec<EndedAttempt>>,
}

impl AttemptRunner {
    /// Starts attempts. Several share one Tokio task for their first poll, so that attempts that
    /// end with it need no Tokio task of their own.
    pub(super) fn start(self: &Arc<Self>, leases: Vec<Lease>) {
        let runner = Arc::clone(self);
        match <[Lease; 1]>::try_from(leases) {
            Ok([lease]) => self.tracker.spawn(runner.run_one(lease)),
            Err(leases) => self.tracker.spawn(runner.run_chunk(leases)),
        };
    }

    async fn run_one(self: Arc<Self>, lease: Lease) {
        let ended = self.attempt(lease).await;
        self.report(vec![ended]);
    }

    async fn run_chunk(self: Arc<Self>, leases: Vec<Lease>) {
        let mut done = Vec::with_capacity(leases.len());
        for lease in leases {
            let runner = Arc::clone(&self);
            let mut attempt = Box::pin(async move { runner.attempt(lease).await });
            match poll_fn(|task| Poll::Ready(attempt.as_mut().poll(task))).await {
                Poll::Ready(ended) => done.push(ended),
                Poll::Pending => {
                    let runner = Arc::clone(&self);
                    self.tracker.spawn(async move { runner.report(vec![attempt.await]) });
                }
            }
        }
        if !done.is_empty() {
            self.report(done);
        }
    }

    fn report(&self, ended: Vec<EndedAttempt>) {
        // Sending fails only after the executor was dropped; its leases are then taken back.
        let _ = self.ended.send(ended);
    }

    async fn attempt(&self, lease: Lease) -> EndedAttempt {
        let started = Instant::now();
        let (task, epoch) = (lease.task, lease.epoch);
        let trace = AttemptTrace::begin(&lease);
        let tenant = lease.lane.tenant.clone();
        let notes = Notes::new(&self.queue, task, epoch);
        let (outcome, then) = match self.registry.get(&lease.lane.task_type) {
            // The last check before the handler starts.
            _ if self.taken_back.contains(task, epoch) => (Outcome::Release, None),
            Some(handler) => self.outcome(handler, lease, &notes).await,
            None => {
                let message = format!("this worker has no handler for {}", lease.lane.task_type);
                (self.retry(Failure::new("NO_HANDLER", message)), None)
            }
        };
        let (progress, log) = notes.close();
        let took = started.elapsed();
        trace.end(&outcome, took);
        let added = then.map(|members| Arc::new(Added { tenant, members }));
        let finish = Finish::new(task, epoch, outcome);
        let finish = Finish { ran: Some(took), progress, log, added, ..finish };
        EndedAttempt { finish, took }
    }

    async fn outcome(
        &self,
        handler: &Arc<dyn Handler>,
        lease: Lease,
        notes: &Arc<Notes>,
    ) -> (Outcome, Option<Members>) {
        let limit = lease.time_limit();
        let (task, epoch) = (lease.task, lease.epoch);
        let last_moment = limit + handler.cleanup_time();
        let fence = self.source.session().map(|session| Fence { task, epoch, session });
        let context = Context::within(lease, fence, self.taken_back.clone(), Arc::clone(notes));
        let cancelled = async {
            self.taken_back.wait_for(task, epoch).await;
            tokio::time::sleep(CANCEL_GRACE).await;
        };
        // The guard covers everything that polls or drops the handler's future, so that it also
        // catches a panic in a destructor.
        let guarded = AssertUnwindSafe(async {
            tokio::select! {
                biased;
                ran = tokio::time::timeout(last_moment, handler.run(context)) => Some(ran),
                () = self.abort.cancelled() => None,
                () = cancelled => None,
            }
        });
        let outcome = match guarded.catch_unwind().await {
            Ok(Some(Ok(Ok(mut output)))) => {
                let then = output.take_then();
                let outcome = success(output);
                // What cannot be stored is a failure, which adds nothing.
                let succeeded = matches!(outcome, Outcome::Success { .. });
                return (outcome, then.filter(|_| succeeded));
            }
            Ok(Some(Ok(Err(decision)))) => self.decided(decision),
            Ok(Some(Err(_elapsed))) => {
                let message = format!("the handler took longer than {} s", limit.as_secs_f64());
                self.retry(Failure::new("TIMEOUT", message))
            }
            Ok(None) => Outcome::Release,
            Err(panic) => self.retry(Failure::new("PANIC", panic_message(panic.as_ref()))),
        };
        (outcome, None)
    }

    fn decided(&self, decision: HandlerError) -> Outcome {
        match decision {
            HandlerError::Retry(error) => self.retry(error),
            HandlerError::RetryAfter(error, after) => {
                Outcome::Retry { error: clean(error), entropy: 0, after: Some(after) }
            }
            HandlerError::Fail(error) => Outcome::Fail { error: clean(error) },
            HandlerError::Release => Outcome::Release,
        }
    }

    fn retry(&self, error: Failure) -> Outcome {
        Outcome::Retry { error: clean(error), entropy: self.random.next(), after: None }
    }
}

fn success(output: Output) -> Outcome {
    let result = output.into_text();
    let text = result.as_deref().unwrap_or_default();
    if text.len() > RESULT_BYTES {
        let message = format!("the result has {} bytes, the limit is {RESULT_BYTES}", text.len());
        return Outcome::Fail { error: Failure::new("RESULT_TOO_LARGE", message) };
    }
    match json::check(text) {
        Ok(()) => Outcome::Success { result },
        Err(bad) => {
            let message = format!("the result is {bad}");
            Outcome::Fail { error: Failure::new("INVALID_RESULT", message) }
        }
    }
}

/// Replaces U+0000, which databases refuse: the text of an error must not make an outcome fail.
fn clean(error: Failure) -> Failure {
    if error.message.contains('\0') || error.code.contains('\0') {
        let replaced = |text: &str| text.replace('\0', "\u{fffd}");
        return Failure::new(&replaced(&error.code), replaced(&error.message));
    }
    error
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "the handler panicked without a message".to_owned()
    }
}
