//! The loop of a worker: claim, start, collect, commit. One Tokio task owns all of its state, so
//! it needs no locks, and it wakes per batch rather than per lease.

mod attempt;
mod attempt_trace;
mod buffer;
mod completer;
mod concurrency;
mod prefetch;
mod reporter;
mod source_events;

use std::sync::Arc;
use std::time::Duration;

use duly_core::lease::Lease;
use duly_core::limits::{PREFETCH, STORE_BATCH, TIMEOUT};
use duly_core::ports::random::Random;
use duly_core::ports::work_source::{Closed, WorkSource};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::attempt::{AttemptRunner, EndedAttempt};
use self::buffer::{Buffer, MAX_WAIT, MAX_WAIT_IF_WANTED};
use self::completer::Completer;
use self::concurrency::Changes;
pub use self::concurrency::Concurrency;
use self::prefetch::PrefetchPolicy;
use self::reporter::Reporter;
use self::source_events::{SourceEvent, SourceEvents};
use crate::notes::ReportQueue;
use crate::registry::Registry;
use crate::taken_back::TakenBackLeases;

/// How much work a worker takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Handlers that run at the same time; [`Executor::concurrency`] changes it later.
    pub concurrency: usize,
    /// The most leases that wait for a slot; fewer if tasks are long.
    pub prefetch: usize,
}

/// What a worker did until it stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutorReport {
    /// Outcomes that were committed.
    pub done: u64,
    /// Outcomes that were refused, because the lease was taken back or the task was deleted.
    pub lost: u64,
    /// Leases that were released, with or without an answer.
    pub released: u64,
    /// Outcomes that got no answer, sent or not.
    pub unanswered: usize,
    /// Handlers that did not stop when aborted.
    pub stuck: usize,
}

/// Runs handlers on leases from one source.
pub struct Executor {
    /// How many handlers may run.
    slots: usize,
    concurrency: Concurrency,
    changes: Changes,
    source: Arc<dyn WorkSource>,
    runner: Arc<AttemptRunner>,
    ended: UnboundedReceiver<Vec<EndedAttempt>>,
    completer: Completer,
    reporter: Reporter,
    prefetch: PrefetchPolicy,
    buffer: Buffer,
    running: usize,
}

/// How long a stopping worker waits for aborted handlers and the last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// Batches of ended attempts taken at once.
const ENDED_BATCHES: usize = 256;

impl Executor {
    /// A worker that is ready to run.
    ///
    /// # Panics
    /// When the configuration exceeds the limits, or nothing may run at all.
    pub fn new(
        config: Config,
        registry: Registry,
        source: Arc<dyn WorkSource>,
        random: Arc<dyn Random>,
    ) -> Self {
        assert!(config.prefetch <= PREFETCH, "bad prefetch: {config:?}");
        let (sender, ended) = unbounded_channel();
        let queue = Arc::<ReportQueue>::default();
        let runner = AttemptRunner {
            registry,
            source: Arc::clone(&source),
            random,
            tracker: TaskTracker::new(),
            abort: CancellationToken::new(),
            queue: Arc::clone(&queue),
            taken_back: TakenBackLeases::default(),
            ended: sender,
        };
        let (concurrency, changes) = concurrency::channel(config.concurrency);
        Self {
            slots: config.concurrency,
            concurrency,
            changes,
            completer: Completer::new(Arc::clone(&source)),
            reporter: Reporter::new(Arc::clone(&source), queue),
            source,
            runner: Arc::new(runner),
            ended,
            prefetch: PrefetchPolicy::new(config),
            buffer: Buffer::default(),
            running: 0,
        }
    }

    /// A handle that changes how many handlers run at once, also while the worker runs.
    pub fn concurrency(&self) -> Concurrency {
        self.concurrency.clone()
    }

    /// Runs until the token is cancelled or the source closes. When cancelled, it releases leases
    /// that have not started, gives running handlers the grace period to end and releases the
    /// rest.
    ///
    /// Dropping the future stops the handlers too, but releases nothing: their leases are lost.
    pub async fn run(mut self, shutdown: CancellationToken, grace: Duration) -> ExecutorReport {
        let _abort_on_drop = self.runner.abort.clone().drop_guard();
        match self.work(&shutdown).await {
            Ok(()) => self.stop(grace).await,
            Err(Closed) => self.give_up().await,
        }
        let stuck = self.running;
        ExecutorReport { stuck, ..self.completer.into_report() }
    }

    /// Claims and runs until the shutdown.
    async fn work(&mut self, shutdown: &CancellationToken) -> Result<(), Closed> {
        let mut claim: Option<PendingClaim> = None;
        let mut ended = Vec::with_capacity(ENDED_BATCHES);
        let source = Arc::clone(&self.source);
        let mut events = SourceEvents::new(&*source);
        loop {
            let room = self.room();
            match &mut claim {
                // Before anything starts: a client that sees its task start may submit the next
                // one, which the waiting claim can then take.
                None if room > 0 && !self.completer.is_full() => claim = self.claim(room)?,
                Some(claim) => self.widen(claim, room),
                None => {}
            }
            // A lease that was taken back must not start.
            while let Some(event) = events.next().now_or_never() {
                self.handle(event);
            }
            self.start_waiting();
            if claim.is_none() && self.room() < room {
                // The claim was answered at once, and there may be more tasks.
                continue;
            }
            // This order starves no branch: answers and leases arrive one batch at a time, and
            // each batch needs a new call.
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return Ok(()),
                slots = self.changes.next() => {
                    self.resize(slots);
                    claim = claim.filter(|claim| claim.max <= self.room());
                }
                answered = self.completer.answered() => answered?,
                leases = granted(&mut claim) => {
                    claim = None;
                    self.buffer.extend(leases?);
                }
                _ = self.ended.recv_many(&mut ended, ENDED_BATCHES) => self.collect(&mut ended),
                event = events.next() => self.handle(event),
                gone = self.reporter.reported() => self.handle(SourceEvent::TakenBack(gone)),
                () = self.buffer.overdue() => {
                    self.hand_back_overdue();
                    claim = claim.filter(|claim| claim.max <= self.room());
                }
            }
        }
    }

    /// Releases waiting leases, waits for running handlers, and commits the last outcomes.
    async fn stop(&mut self, grace: Duration) {
        self.hand_back(self.buffer.len());
        // No handler runs longer than the limit, so a longer grace period has no effect.
        let ended = self.settle(grace.min(TIMEOUT), |executor| executor.running == 0).await;
        if self.running > 0 {
            self.runner.abort.cancel();
        }
        let idle = |executor: &Self| executor.running == 0 && executor.completer.is_idle();
        if ended.is_err() || self.settle(LAST_ANSWERS, idle).await.is_err() {
            self.give_up().await;
        }
    }

    /// Collects and commits until the condition holds or the time is over.
    async fn settle(
        &mut self,
        limit: Duration,
        settled: impl Fn(&Self) -> bool,
    ) -> Result<(), Closed> {
        let deadline = Instant::now() + limit;
        let mut ended = Vec::new();
        let source = Arc::clone(&self.source);
        let mut events = SourceEvents::new(&*source);
        while !settled(self) {
            tokio::select! {
                biased;
                answered = self.completer.answered() => answered?,
                _ = self.ended.recv_many(&mut ended, ENDED_BATCHES) => self.collect(&mut ended),
                event = events.next() => self.handle(event),
                gone = self.reporter.reported() => self.handle(SourceEvent::TakenBack(gone)),
                () = tokio::time::sleep_until(deadline) => break,
            }
        }
        Ok(())
    }

    /// Stops the handlers: nothing can be committed any more.
    async fn give_up(&mut self) {
        self.runner.abort.cancel();
        self.runner.tracker.close();
        let _ = tokio::time::timeout(LAST_ANSWERS, self.runner.tracker.wait()).await;
        while let Ok(ended) = self.ended.try_recv() {
            self.collect(&mut vec![ended]);
        }
        self.hand_back(self.buffer.len());
    }

    /// How many more leases the worker may hold.
    fn room(&self) -> usize {
        let held = self.running + self.buffer.len();
        (self.slots + self.prefetch.limit(Instant::now())).saturating_sub(held)
    }

    /// Makes a claim; `None` if it was answered at once.
    fn claim(&mut self, room: usize) -> Result<Option<PendingClaim>, Closed> {
        let max = room.min(STORE_BATCH);
        let source = Arc::clone(&self.source);
        let mut leases = async move { source.claim(max).await }.boxed();
        match (&mut leases).now_or_never() {
            Some(answer) => {
                self.buffer.extend(answer?);
                Ok(None)
            }
            None => Ok(Some(PendingClaim { max, leases })),
        }
    }

    /// Raises the claim's limit when the room has at least doubled since it was made, so that it
    /// can take a whole batch of new tasks.
    fn widen(&self, claim: &mut PendingClaim, room: usize) {
        let room = room.min(STORE_BATCH);
        if room >= 2 * claim.max {
            claim.max = room;
            self.source.widen(room);
        }
    }

    /// Starts waiting leases in order of arrival, as far as slots are free.
    fn start_waiting(&mut self) {
        let chunk = self.prefetch.chunk();
        loop {
            // More handlers than slots run after the concurrency was lowered.
            let free = self.slots.saturating_sub(self.running);
            let count = chunk.min(free).min(self.buffer.len());
            if count == 0 {
                return;
            }
            let leases = self.buffer.take(count).collect();
            self.running += count;
            self.runner.start(leases);
        }
    }

    /// Frees the slots of ended attempts; the completer sends their outcomes.
    fn collect(&mut self, ended: &mut Vec<Vec<EndedAttempt>>) {
        let now = Instant::now();
        for EndedAttempt { finish, took } in ended.drain(..).flatten() {
            self.running -= 1;
            self.prefetch.record(took, now);
            self.completer.push(finish);
        }
    }

    /// Drops waiting leases that are gone and tells the handlers of those that run, or answers
    /// which leases have not started.
    fn handle(&mut self, event: SourceEvent) {
        match event {
            SourceEvent::TakenBack(leases) => {
                for release in self.buffer.remove_taken_back(&leases) {
                    self.completer.push(release);
                }
                self.runner.taken_back.add(leases);
            }
            SourceEvent::UnstartedReply(answer) => answer(self.buffer.tasks()),
        }
    }

    /// Changes the number of slots. Releases leases that would wait too long for one, newest
    /// first.
    fn resize(&mut self, slots: usize) {
        self.slots = slots;
        self.prefetch.resize(slots);
        let held = self.running + self.buffer.len();
        let surplus = held.saturating_sub(slots + self.prefetch.limit(Instant::now()));
        for lease in self.buffer.take_newest(surplus) {
            self.completer.push(lease.release());
        }
    }

    /// Releases leases that wait too long for a slot: after a short time if another worker is
    /// ready to run them, and after [`MAX_WAIT`] in any case.
    fn hand_back_overdue(&mut self) {
        let mut overdue = self.buffer.take_overdue(MAX_WAIT, |_| true);
        if !self.prefetch.has_ended_within(MAX_WAIT_IF_WANTED, Instant::now()) {
            let source = &self.source;
            let wanted = |lease: &Lease| source.is_wanted(&lease.lane);
            overdue.extend(self.buffer.take_overdue(MAX_WAIT_IF_WANTED, wanted));
        }
        if !overdue.is_empty() {
            self.prefetch.suspend();
        }
        for lease in overdue {
            self.completer.push(lease.release());
        }
    }

    /// Releases the oldest waiting leases.
    fn hand_back(&mut self, count: usize) {
        for lease in self.buffer.take(count) {
            self.completer.push(lease.release());
        }
    }
}

/// A claim without an answer so far.
struct PendingClaim {
    max: usize,
    leases: BoxFuture<'static, Result<Vec<Lease>, Closed>>,
}

/// Waits for the claim's answer; for ever if there is no claim.
async fn granted(claim: &mut Option<PendingClaim>) -> Result<Vec<Lease>, Closed> {
    match claim {
        Some(claim) => (&mut claim.leases).await,
        None => std::future::pending().await,
    }
}
