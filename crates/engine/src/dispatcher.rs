//! The loop between one worker session and the store: it commits outcomes and claims due tasks,
//! both in one exchange. It sleeps until the next due time, a hint, an outcome or a claim; it
//! scans nothing at an interval.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::limits::{CONCURRENCY, PREFETCH, STORE_BATCH};
use duly_core::ports::store::{Error, Exchange, Exchanged, Store};
use duly_core::time::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cascade::CascadeBell;
use crate::claim_slot::{ClaimSlot, WaitingClaim};
use crate::deadlines::Deadlines;
use crate::lease_links::{deliver, needs_preparation, prepare};
use crate::rates::{Counter, Rates};
use crate::source::FinishCall;
use crate::task_waiters::TaskWaiters;

/// How long the loop relies on hints before it claims without one: a hint may be lost.
const SAFETY_POLL: Duration = Duration::from_secs(30);
/// How long it waits after the store did not answer: the first time, and at most.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

pub(crate) struct Dispatcher {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) session: SessionId,
    pub(crate) claim_slot: Arc<ClaimSlot>,
    pub(crate) inbox: mpsc::UnboundedReceiver<FinishCall>,
    pub(crate) task_waiters: Arc<TaskWaiters>,
    pub(crate) deadlines: Arc<Deadlines>,
    pub(crate) rates: Arc<Rates>,
    pub(crate) cascade_bell: Arc<CascadeBell>,
    /// Whether outcomes wait here while the store is unavailable. Those of remote workers do not:
    /// the worker gets an error, keeps its outcomes and sends them again.
    pub(crate) keeps_outcomes: bool,
}

/// What the loop knows between two exchanges.
struct State {
    finishes: VecDeque<PendingFinish>,
    /// When to claim next.
    due: Option<Timestamp>,
    /// Whether that time has come. Until then the claim stays in its slot, where the submitter
    /// can take it.
    is_due: bool,
    back_off: Duration,
    /// The most outcomes that the next exchange takes. Fewer than usual while the loop searches
    /// for an outcome that the store cannot take.
    batch: usize,
    /// Tasks with children that the worker holds.
    parents: HashSet<TaskId>,
    /// Leases that lack something before the worker gets them. Each ends with outcomes that the
    /// dispatcher itself reports. Meanwhile other outcomes are committed.
    preparing: JoinSet<Vec<Finish>>,
    /// Whether the next exchange also claims. Not while it is unclear whether the claim or an
    /// outcome made the last exchange fail.
    claims: bool,
}

impl State {
    /// Outcomes that no call waits for.
    fn add_unanswered(&mut self, finishes: impl IntoIterator<Item = Finish>) {
        let unanswered = |finish| PendingFinish { finish, call: None };
        self.finishes.extend(finishes.into_iter().map(unanswered));
    }

    fn remember_parents(&mut self, leases: &[Lease]) {
        // A worker that has lost leases may never report their outcomes.
        if self.parents.len() > CONCURRENCY + PREFETCH {
            self.parents.clear();
        }
        let parents = leases.iter().filter(|lease| lease.has_children);
        self.parents.extend(parents.map(|lease| lease.task));
    }
}

/// An outcome that is not committed yet, and the call that waits for it.
struct PendingFinish {
    finish: Finish,
    call: Option<Arc<CallState>>,
}

/// The answers of one call, collected item by item.
struct CallState {
    answers: parking_lot::Mutex<Vec<Finished>>,
    expected: usize,
    reply: parking_lot::Mutex<Option<oneshot::Sender<Vec<Finished>>>>,
}

impl Dispatcher {
    /// Runs until shutdown, then commits the outcomes it holds.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut state = State {
            finishes: VecDeque::new(),
            due: Some(Timestamp::EPOCH),
            is_due: true,
            back_off: Duration::ZERO,
            batch: STORE_BATCH,
            parents: HashSet::new(),
            preparing: JoinSet::new(),
            claims: true,
        };
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                () = self.wait(&mut state) => {}
            }
            if !self.run_once(&mut state, &shutdown).await {
                tokio::select! {
                    () = shutdown.cancelled() => break,
                    () = tokio::time::sleep(state.back_off) => {}
                }
            }
        }
        self.claim_slot.close();
        self.inbox.close();
        while let Some(finishes) = state.preparing.join_next().await {
            state.add_unanswered(finishes.unwrap_or_default());
        }
        self.collect(&mut state);
        while !state.finishes.is_empty() && self.run_once(&mut state, &shutdown).await {}
    }

    /// Waits until there is something to exchange.
    async fn wait(&mut self, state: &mut State) {
        // Fixed before the loop: what wakes it, such as a heartbeat, must not put the poll off.
        let poll_at = Instant::now() + SAFETY_POLL;
        loop {
            self.collect(state);
            if self.claim_slot.is_waiting() && Instant::now() >= poll_at {
                state.due = Some(Timestamp::EPOCH);
            }
            if let Some(hint) = self.claim_slot.take_hint() {
                state.due = Some(state.due.map_or(hint, |due| due.min(hint)));
            }
            let due_in = self.time_to(state.due).await;
            state.is_due = due_in == Duration::ZERO;
            let claims_in = self.claim_slot.is_waiting().then_some(due_in);
            if !state.finishes.is_empty() || claims_in == Some(Duration::ZERO) {
                return;
            }
            let poll_in = poll_at.saturating_duration_since(Instant::now());
            tokio::select! {
                Some(finishes) = state.preparing.join_next() => {
                    state.add_unanswered(finishes.unwrap_or_default());
                }
                call = self.inbox.recv() => match call {
                    Some(call) => accept(state, call),
                    // Every source is gone; only shutdown can come now.
                    None => std::future::pending().await,
                },
                () = self.claim_slot.changed() => {}
                () = sleep_for(claims_in.map(|time| time.min(poll_in))) => {}
            }
        }
    }

    /// How long to wait before the next claim: until a task is due, or until the safety poll. If
    /// the store cannot tell the time, the claim follows at once; its failure backs off.
    async fn time_to(&self, due: Option<Timestamp>) -> Duration {
        match due {
            None => SAFETY_POLL,
            Some(Timestamp::EPOCH) => Duration::ZERO,
            Some(due) => match self.store.now().await {
                Ok(now) => due.since(now).min(SAFETY_POLL),
                Err(_) => Duration::ZERO,
            },
        }
    }

    fn collect(&mut self, state: &mut State) {
        while let Ok(call) = self.inbox.try_recv() {
            accept(state, call);
        }
    }

    /// One exchange. Returns whether the store answered.
    async fn run_once(&mut self, state: &mut State, shutdown: &CancellationToken) -> bool {
        let count = state.finishes.len().min(state.batch);
        let finishes: Vec<Finish> =
            state.finishes.iter().take(count).map(|pending| pending.finish.clone()).collect();
        // What the outcomes release is granted in the same exchange.
        let releases = finishes.iter().any(|finish| state.parents.contains(&finish.task));
        let claims = state.claims && (state.is_due || releases);
        let waiting = if claims { self.claim_slot.take() } else { None };
        let claim = waiting.as_ref().map(|waiting| waiting.claim.clone());
        if finishes.is_empty() && claim.is_none() {
            // The submitter took the claim, or the outcomes that kept the loop from claiming were
            // given up.
            state.claims = true;
            return true;
        }
        let exchange = Exchange { session: self.session, finishes, claim };
        match self.store.exchange(exchange).await {
            Ok(answer) => {
                (state.back_off, state.batch, state.claims) = (Duration::ZERO, STORE_BATCH, true);
                self.settle(state, count, waiting, answer, shutdown);
                true
            }
            Err(error) => {
                let claimed = waiting.is_some();
                if let Some(waiting) = waiting {
                    self.claim_slot.put_back(waiting);
                }
                if !self.keeps_outcomes && error.is_retryable() {
                    // Dropping the reply channels tells the callers.
                    state.finishes.clear();
                }
                recover(state, count, claimed, &error);
                false
            }
        }
    }

    fn settle(
        &self,
        state: &mut State,
        count: usize,
        waiting: Option<WaitingClaim>,
        answer: Exchanged,
        shutdown: &CancellationToken,
    ) {
        let committed: Vec<PendingFinish> = state.finishes.drain(..count).collect();
        self.ring_cascade(&committed);
        self.task_waiters.notify_changed(ended(&committed, &answer.finished));
        for pending in &committed {
            state.parents.remove(&pending.finish.task);
        }
        for (pending, finished) in committed.into_iter().zip(answer.finished) {
            pending.settle(finished);
        }
        let Some(waiting) = waiting else {
            // The next claim needs the due time.
            state.due = state.due.into_iter().chain(answer.next_due).min();
            return;
        };
        state.due = answer.next_due;
        if answer.leases.is_empty() {
            self.claim_slot.put_back(waiting);
            return;
        }
        state.remember_parents(&answer.leases);
        self.deadlines.add_leases(&answer.leases);
        self.rates.count(Counter::Started, answer.leases.iter().map(|lease| &lease.lane));
        if !answer.leases.iter().any(needs_preparation) {
            let released = self.claim_slot.serve(waiting, answer.leases);
            state.add_unanswered(released.iter().map(Lease::release));
            return;
        }
        let (store, claim_slot) = (Arc::clone(&self.store), Arc::clone(&self.claim_slot));
        let shutdown = shutdown.clone();
        state.preparing.spawn(async move {
            match prepare(&*store, answer.leases, &shutdown).await {
                Ok(prepared) => deliver(&claim_slot, waiting, prepared),
                Err(leases) => leases.iter().map(Lease::release).collect(),
            }
        });
    }

    /// A task that ended may leave others that can no longer start, a failed one rather than another.
    fn ring_cascade(&self, committed: &[PendingFinish]) {
        let mut outcomes = committed.iter().map(|pending| &pending.finish.outcome);
        if outcomes.clone().any(|outcome| matches!(outcome, Outcome::Fail { .. })) {
            self.cascade_bell.ring();
        } else if outcomes.any(|outcome| *outcome != Outcome::Release) {
            self.cascade_bell.ring_soon();
        }
    }
}

/// Plans the next exchange after one failed. Outcomes are kept and sent again, unless one of them
/// can never be committed. The loop finds that one by leaving out the claim, then by halving the
/// batch, and releases its lease instead.
fn recover(state: &mut State, count: usize, claimed: bool, error: &Error) {
    let (least, most) = BACK_OFF;
    state.back_off = (state.back_off * 2).clamp(least, most);
    if error.is_retryable() {
        tracing::debug!(%error, "the store is unavailable; outcomes wait");
        return;
    }
    tracing::error!(error = error as &dyn std::error::Error, "an exchange failed");
    if count == 0 {
        return;
    }
    if claimed {
        state.claims = false;
    } else if count > 1 {
        state.batch = count.div_ceil(2);
    } else if let Some(poison) = state.finishes.pop_front() {
        release_instead(state, poison);
    }
}

/// Replaces an outcome that can never be committed by the release of its lease.
fn release_instead(state: &mut State, poison: PendingFinish) {
    let Finish { task, epoch, ref outcome, .. } = poison.finish;
    tracing::error!(task.id = %task, "an outcome cannot be committed; its lease is released");
    if *outcome != Outcome::Release {
        let finish = Finish::new(task, epoch, Outcome::Release);
        state.finishes.push_back(PendingFinish { finish, call: None });
    }
    poison.settle(Finished::Unknown);
}

impl PendingFinish {
    fn settle(self, finished: Finished) {
        let Some(call) = self.call else { return };
        let mut answers = call.answers.lock();
        answers.push(finished);
        if answers.len() == call.expected
            && let Some(reply) = call.reply.lock().take()
        {
            drop(reply.send(std::mem::take(&mut *answers)));
        }
    }
}

fn accept(state: &mut State, call: FinishCall) {
    let expected = call.batch.len();
    let shared = Arc::new(CallState {
        answers: parking_lot::Mutex::new(Vec::with_capacity(expected)),
        expected,
        reply: parking_lot::Mutex::new(Some(call.reply)),
    });
    let pending = |finish| PendingFinish { finish, call: Some(Arc::clone(&shared)) };
    state.finishes.extend(call.batch.into_iter().map(pending));
}

fn ended<'a>(
    committed: &'a [PendingFinish],
    finished: &'a [Finished],
) -> impl Iterator<Item = TaskId> + 'a {
    let done = |(_, finished): &(&PendingFinish, &Finished)| **finished == Finished::Done;
    committed.iter().zip(finished).filter(done).map(|(pending, _)| pending.finish.task)
}

async fn sleep_for(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}
