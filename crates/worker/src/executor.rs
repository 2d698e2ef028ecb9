//! The loop of a worker: claim, start, collect, commit. One task of the runtime owns all of its
//! state, so nothing in it is locked, and it wakes per batch rather than per lease.

mod attempt;
mod buffer;
mod completer;
mod concurrency;
mod outside;
mod pace;
mod reporter;
mod story;

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

use self::attempt::{Ended, Floor};
use self::buffer::{Buffer, PATIENCE, SHORT_PATIENCE};
use self::completer::Completer;
use self::concurrency::Changes;
pub use self::concurrency::Concurrency;
use self::outside::{Outside, Word};
use self::pace::Pace;
use self::reporter::Reporter;
use crate::cancels::Cancels;
use crate::notes::Board;
use crate::registry::Registry;

/// How much a worker does at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Handlers that run at the same time, to begin with; see [`Executor::concurrency`].
    pub concurrency: usize,
    /// Leases taken beyond those that run, at the most; long tasks get fewer.
    pub prefetch: usize,
}

/// What a worker did, told when it stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Outcomes that were committed.
    pub done: u64,
    /// Outcomes that were refused, since the lease had been taken back or the task is gone.
    pub lost: u64,
    /// Leases that were handed back, whether answered or not.
    pub released: u64,
    /// Outcomes that were sent or waited, and got no answer.
    pub unanswered: usize,
    /// Handlers that did not stop when told to.
    pub stuck: usize,
}

/// Runs handlers on leases from one source.
pub struct Executor {
    /// Handlers that may run now.
    places: usize,
    concurrency: Concurrency,
    changes: Changes,
    source: Arc<dyn WorkSource>,
    floor: Arc<Floor>,
    ended: UnboundedReceiver<Vec<Ended>>,
    completer: Completer,
    reporter: Reporter,
    pace: Pace,
    buffer: Buffer,
    running: usize,
}

/// How long a stopping worker waits for aborted handlers and the last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// Reports taken at once.
const REPORTS: usize = 256;

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
        let board = Arc::<Board>::default();
        let floor = Floor {
            registry,
            source: Arc::clone(&source),
            random,
            tracker: TaskTracker::new(),
            abort: CancellationToken::new(),
            board: Arc::clone(&board),
            cancels: Cancels::default(),
            ended: sender,
        };
        let (concurrency, changes) = concurrency::channel(config.concurrency);
        Self {
            places: config.concurrency,
            concurrency,
            changes,
            completer: Completer::new(Arc::clone(&source)),
            reporter: Reporter::new(Arc::clone(&source), board),
            source,
            floor: Arc::new(floor),
            ended,
            pace: Pace::new(config),
            buffer: Buffer::default(),
            running: 0,
        }
    }

    /// Changes how many handlers run at once, also while the worker runs.
    pub fn concurrency(&self) -> Concurrency {
        self.concurrency.clone()
    }

    /// Works until the token is cancelled or the source closes. Cancelled, it hands back what
    /// has not started, gives running handlers the grace to end and hands back the rest.
    ///
    /// Dropping the call stops the handlers too, but tells nobody: their leases are lost.
    pub async fn run(mut self, shutdown: CancellationToken, grace: Duration) -> Report {
        let _abort_on_drop = self.floor.abort.clone().drop_guard();
        match self.work(&shutdown).await {
            Ok(()) => self.stop(grace).await,
            Err(Closed) => self.give_up().await,
        }
        let stuck = self.running;
        Report { stuck, ..self.completer.into_report() }
    }

    /// Claims and runs until the shutdown.
    async fn work(&mut self, shutdown: &CancellationToken) -> Result<(), Closed> {
        let mut claim: Option<PendingClaim> = None;
        let mut reports = Vec::with_capacity(REPORTS);
        let source = Arc::clone(&self.source);
        let mut outside = Outside::new(&*source);
        loop {
            let room = self.room();
            match &mut claim {
                // Before anything starts: whoever sees a task start may submit the next.
                None if room > 0 && !self.completer.is_full() => claim = self.claim(room)?,
                Some(claim) => self.widen(claim, room),
                None => {}
            }
            // A lease that was taken back is not started.
            while let Some(word) = outside.word().now_or_never() {
                self.hear(word);
            }
            self.start_waiting();
            if claim.is_none() && self.room() < room {
                // It was answered at once, and there may be more.
                continue;
            }
            // In this order nothing starves: answers and leases come one batch at a time, and
            // each has to be asked for again.
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return Ok(()),
                places = self.changes.next() => {
                    self.resize(places);
                    claim = claim.filter(|claim| claim.max <= self.room());
                }
                answered = self.completer.answered() => answered?,
                leases = granted(&mut claim) => {
                    claim = None;
                    self.buffer.extend(leases?);
                }
                _ = self.ended.recv_many(&mut reports, REPORTS) => self.collect(&mut reports),
                word = outside.word() => self.hear(word),
                gone = self.reporter.reported() => self.hear(Word::Gone(gone)),
                () = self.buffer.impatient() => {
                    self.hand_back_overdue();
                    claim = claim.filter(|claim| claim.max <= self.room());
                }
            }
        }
    }

    /// Hands back, waits for what runs, and commits the last outcomes.
    async fn stop(&mut self, grace: Duration) {
        self.hand_back(self.buffer.len());
        // No handler may run longer than the limit, so a longer grace means the same.
        let ended = self.settle(grace.min(TIMEOUT), |executor| executor.running == 0).await;
        if self.running > 0 {
            self.floor.abort.cancel();
        }
        let idle = |executor: &Self| executor.running == 0 && executor.completer.is_idle();
        if ended.is_err() || self.settle(LAST_ANSWERS, idle).await.is_err() {
            self.give_up().await;
        }
    }

    /// Collects and commits until the condition holds or the time is over.
    async fn settle(
        &mut self,
        patience: Duration,
        settled: impl Fn(&Self) -> bool,
    ) -> Result<(), Closed> {
        let deadline = Instant::now() + patience;
        let mut reports = Vec::new();
        let source = Arc::clone(&self.source);
        let mut outside = Outside::new(&*source);
        while !settled(self) {
            tokio::select! {
                biased;
                answered = self.completer.answered() => answered?,
                _ = self.ended.recv_many(&mut reports, REPORTS) => self.collect(&mut reports),
                word = outside.word() => self.hear(word),
                gone = self.reporter.reported() => self.hear(Word::Gone(gone)),
                () = tokio::time::sleep_until(deadline) => break,
            }
        }
        Ok(())
    }

    /// Nothing can be committed any more, so there is no point in going on.
    async fn give_up(&mut self) {
        self.floor.abort.cancel();
        self.floor.tracker.close();
        let _ = tokio::time::timeout(LAST_ANSWERS, self.floor.tracker.wait()).await;
        while let Ok(ended) = self.ended.try_recv() {
            self.collect(&mut vec![ended]);
        }
        self.hand_back(self.buffer.len());
    }

    /// How many more leases may be held.
    fn room(&self) -> usize {
        let held = self.running + self.buffer.len();
        (self.places + self.pace.prefetch(Instant::now())).saturating_sub(held)
    }

    /// Makes a claim, unless it is answered at once.
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

    /// Tells the source when there is much more room than when the claim was made, so that a batch
    /// of new tasks can be handed over whole.
    fn widen(&self, claim: &mut PendingClaim, room: usize) {
        let room = room.min(STORE_BATCH);
        if room >= 2 * claim.max {
            claim.max = room;
            self.source.widen(room);
        }
    }

    /// Starts waiting leases in the order they came, as far as there are places.
    fn start_waiting(&mut self) {
        let chunk = self.pace.chunk();
        loop {
            // More may run than there are places, since their number was lowered.
            let free = self.places.saturating_sub(self.running);
            let count = chunk.min(free).min(self.buffer.len());
            if count == 0 {
                return;
            }
            let leases = self.buffer.take(count).collect();
            self.running += count;
            self.floor.start(leases);
        }
    }

    /// A handler's place is free as soon as it ended; its outcome travels on its own.
    fn collect(&mut self, reports: &mut Vec<Vec<Ended>>) {
        let now = Instant::now();
        for Ended { finish, took } in reports.drain(..).flatten() {
            self.running -= 1;
            self.pace.ended(took, now);
            self.completer.push(finish);
        }
    }

    /// Leases that are gone are not started any more; the handlers of those that run are told.
    fn hear(&mut self, word: Word) {
        match word {
            Word::Gone(leases) => {
                for release in self.buffer.give_up(&leases) {
                    self.completer.push(release);
                }
                self.floor.cancels.add(leases);
            }
            Word::RollCall(answer) => answer(self.buffer.tasks()),
        }
    }

    /// Goes by another number of places. Leases that would wait too long for one of them are
    /// handed back, the newest first.
    fn resize(&mut self, places: usize) {
        self.places = places;
        self.pace.resize(places);
        let held = self.running + self.buffer.len();
        let surplus = held.saturating_sub(places + self.pace.prefetch(Instant::now()));
        for lease in self.buffer.take_newest(surplus) {
            self.completer.push(lease.release());
        }
    }

    /// Hands back leases that wait for long handlers: after a moment where another worker is ready
    /// to run them, and after a while in any case.
    fn hand_back_overdue(&mut self) {
        let mut overdue = self.buffer.take_overdue(PATIENCE, |_| true);
        if !self.pace.has_ended_within(SHORT_PATIENCE, Instant::now()) {
            let source = &self.source;
            let wanted = |lease: &Lease| source.is_wanted(&lease.lane);
            overdue.extend(self.buffer.take_overdue(SHORT_PATIENCE, wanted));
        }
        if !overdue.is_empty() {
            self.pace.halt();
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

/// A claim that was not answered yet.
struct PendingClaim {
    max: usize,
    leases: BoxFuture<'static, Result<Vec<Lease>, Closed>>,
}

/// Waits for the claim's answer, for ever if there is no claim.
async fn granted(claim: &mut Option<PendingClaim>) -> Result<Vec<Lease>, Closed> {
    match claim {
        Some(claim) => (&mut claim.leases).await,
        None => std::future::pending().await,
    }
}
