//! The loop between one worker session and the store: commits outcomes and claims what is due,
//! both in one exchange. It sleeps until the next due time, a hint, an outcome or a claim;
//! nothing is scanned at an interval.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::limits::STORE_BATCH;
use duly_core::ports::store::{Error, Exchange, Exchanged, Store};
use duly_core::time::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::deadlines::Deadlines;
use crate::desk::{Desk, Waiting};
use crate::outcomes::Outcomes;
use crate::rates::{Rates, What};
use crate::source::FinishCall;

/// How long the loop trusts that no hint was lost.
const SAFETY_POLL: Duration = Duration::from_secs(30);
/// How long it waits for a store that does not answer, at first and at the most.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

pub(crate) struct Dispatcher {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) session: SessionId,
    pub(crate) desk: Arc<Desk>,
    pub(crate) inbox: mpsc::UnboundedReceiver<FinishCall>,
    pub(crate) outcomes: Arc<Outcomes>,
    pub(crate) deadlines: Arc<Deadlines>,
    pub(crate) rates: Arc<Rates>,
    /// Whether outcomes wait for a store that is away. Those of workers elsewhere do not: the
    /// worker is told, keeps them and sends them again.
    pub(crate) patient: bool,
}

/// What the loop knows between two exchanges.
struct State {
    finishes: VecDeque<Pending>,
    /// When to claim next; at once to begin with.
    due: Option<Timestamp>,
    /// Whether that time has come. Until then the claim stays where new tasks find it.
    is_due: bool,
    back_off: Duration,
    /// How many outcomes the next exchange takes; fewer while one that the store cannot take is
    /// being looked for.
    batch: usize,
    /// Whether the next exchange claims as well; not while it is unclear which of the two failed.
    claims: bool,
}

/// An outcome that is not committed yet, and who waits for it.
struct Pending {
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
    /// Works until shut down, then commits what is left.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut state = State {
            finishes: VecDeque::new(),
            due: Some(Timestamp::EPOCH),
            is_due: true,
            back_off: Duration::ZERO,
            batch: STORE_BATCH,
            claims: true,
        };
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                () = self.wait(&mut state) => {}
            }
            if !self.run_once(&mut state).await {
                tokio::select! {
                    () = shutdown.cancelled() => break,
                    () = tokio::time::sleep(state.back_off) => {}
                }
            }
        }
        self.desk.close();
        self.inbox.close();
        self.collect(&mut state);
        while !state.finishes.is_empty() && self.run_once(&mut state).await {}
    }

    /// Waits until there is something to exchange.
    async fn wait(&mut self, state: &mut State) {
        loop {
            self.collect(state);
            if let Some(hint) = self.desk.take_hint() {
                state.due = Some(state.due.map_or(hint, |due| due.min(hint)));
            }
            let due_in = self.time_to(state.due).await;
            state.is_due = due_in == Duration::ZERO;
            let claims_in = self.desk.is_waiting().then_some(due_in);
            if !state.finishes.is_empty() || claims_in == Some(Duration::ZERO) {
                return;
            }
            tokio::select! {
                call = self.inbox.recv() => match call {
                    Some(call) => accept(state, call),
                    // Every source is gone; only shutdown can come now.
                    None => std::future::pending().await,
                },
                () = self.desk.changed() => {}
                () = sleep_for(claims_in) => {
                    if claims_in == Some(SAFETY_POLL) {
                        state.due = Some(Timestamp::EPOCH);
                    }
                }
            }
        }
    }

    /// How long until a claim should be tried: until something is due, or until the safety poll. A
    /// store that cannot tell the time is asked at once, and backed off from.
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
    async fn run_once(&mut self, state: &mut State) -> bool {
        let count = state.finishes.len().min(state.batch);
        let finishes: Vec<Finish> =
            state.finishes.iter().take(count).map(|pending| pending.finish.clone()).collect();
        let waiting = if state.claims && state.is_due { self.desk.take() } else { None };
        let claim = waiting.as_ref().map(|waiting| waiting.claim.clone());
        if finishes.is_empty() && claim.is_none() {
            // The submitter was quicker and serves the claim, or the outcomes that kept claims
            // waiting have been given up.
            state.claims = true;
            return true;
        }
        let exchange = Exchange { session: self.session, finishes, claim };
        match self.store.exchange(exchange).await {
            Ok(answer) => {
                (state.back_off, state.batch, state.claims) = (Duration::ZERO, STORE_BATCH, true);
                self.settle(state, count, waiting, answer);
                true
            }
            Err(error) => {
                let claimed = waiting.is_some();
                if let Some(waiting) = waiting {
                    self.desk.put_back(waiting);
                }
                if !self.patient && error.is_retryable() {
                    // Whoever waits for an answer sees that there is none.
                    state.finishes.clear();
                }
                endure(state, count, claimed, &error);
                false
            }
        }
    }

    fn settle(&self, state: &mut State, count: usize, waiting: Option<Waiting>, answer: Exchanged) {
        let committed: Vec<Pending> = state.finishes.drain(..count).collect();
        self.outcomes.announce(ended(&committed, &answer.finished));
        for (pending, finished) in committed.into_iter().zip(answer.finished) {
            pending.settle(finished);
        }
        let Some(waiting) = waiting else {
            // Nobody waits now, but somebody will.
            state.due = state.due.into_iter().chain(answer.next_due).min();
            return;
        };
        state.due = answer.next_due;
        if answer.leases.is_empty() {
            self.desk.put_back(waiting);
            return;
        }
        self.deadlines.expect(&answer.leases);
        self.rates.count(What::Started, answer.leases.iter().map(|lease| &lease.lane));
        give_back(state, &self.desk.serve(waiting, answer.leases));
    }
}

/// The store refused. Outcomes are kept and tried again, unless one of them can never be
/// committed: it is found by leaving out the claim, then by halving, and its lease is handed back
/// instead.
fn endure(state: &mut State, count: usize, claimed: bool, error: &Error) {
    let (least, most) = BACK_OFF;
    state.back_off = (state.back_off * 2).clamp(least, most);
    if error.is_retryable() {
        tracing::debug!(%error, "the store is away; outcomes wait");
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
        give_up(state, poison);
    }
}

fn give_up(state: &mut State, poison: Pending) {
    let Finish { task, epoch, ref outcome, .. } = poison.finish;
    tracing::error!(task.id = %task, "an outcome could not be committed and was given up");
    if *outcome != Outcome::Release {
        let finish = Finish::new(task, epoch, Outcome::Release);
        state.finishes.push_back(Pending { finish, call: None });
    }
    poison.settle(Finished::Unknown);
}

impl Pending {
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
    let pending = |finish| Pending { finish, call: Some(Arc::clone(&shared)) };
    state.finishes.extend(call.batch.into_iter().map(pending));
}

/// Leases that nobody received go back with the next exchange.
fn give_back(state: &mut State, leases: &[Lease]) {
    let release = |lease: &Lease| Pending { finish: lease.release(), call: None };
    state.finishes.extend(leases.iter().map(release));
}

fn ended<'a>(
    committed: &'a [Pending],
    finished: &'a [Finished],
) -> impl Iterator<Item = TaskId> + 'a {
    let done = |(_, finished): &(&Pending, &Finished)| **finished == Finished::Done;
    committed.iter().zip(finished).filter(done).map(|(pending, _)| pending.finish.task)
}

async fn sleep_for(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}
