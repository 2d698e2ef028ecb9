//! The loop between one worker session and the store: it commits outcomes and claims due tasks,
//! both in one exchange. It sleeps until the next due time, a hint, an outcome or a claim; it
//! scans nothing at an interval.

mod state;

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::limits::STORE_BATCH;
use duly_core::ports::store::{Exchange, Exchanged, Store};
use duly_core::time::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::state::{PendingFinish, State, accept, recover};
use crate::cascade::CascadeBell;
use crate::claim_slot::{ClaimSlot, WaitingClaim};
use crate::deadlines::Deadlines;
use crate::lease_links::{deliver, needs_preparation, prepare};
use crate::rates::{Counter, Rates};
use crate::source::FinishCall;
use crate::task_waiters::TaskWaiters;

/// How long the loop relies on hints before it claims without one: a hint may be lost.
const SAFETY_POLL: Duration = Duration::from_secs(30);

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

impl Dispatcher {
    /// Runs until shutdown, then commits the outcomes it holds.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut state = State::new();
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
        if !state.parents.is_empty() {
            for pending in &committed {
                state.parents.remove(&pending.finish.task);
            }
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
            match prepare(&*store, answer.leases, answer.parents, &shutdown).await {
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
