//! What the dispatcher knows between two exchanges: outcomes that are not committed, and when to claim.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::limits::{CONCURRENCY, PREFETCH, STORE_BATCH};
use duly_core::ports::store::Error;
use duly_core::time::Timestamp;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::source::FinishCall;

/// How long the loop waits after the store did not answer: the first time, and at most.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// What the loop knows between two exchanges.
pub(super) struct State {
    pub(super) finishes: VecDeque<PendingFinish>,
    /// When to claim next.
    pub(super) due: Option<Timestamp>,
    /// Whether that time has come. Until then the claim stays in its slot, where the submitter
    /// can take it.
    pub(super) is_due: bool,
    pub(super) back_off: Duration,
    /// The most outcomes that the next exchange takes. Fewer than usual while the loop searches
    /// for an outcome that the store cannot take.
    pub(super) batch: usize,
    /// Tasks with children that the worker holds.
    pub(super) parents: HashSet<TaskId>,
    /// Leases that lack something before the worker gets them. Each ends with outcomes that the
    /// dispatcher itself reports. Meanwhile other outcomes are committed.
    pub(super) preparing: JoinSet<Vec<Finish>>,
    /// Whether the next exchange also claims. Not while it is unclear whether the claim or an
    /// outcome made the last exchange fail.
    pub(super) claims: bool,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            finishes: VecDeque::new(),
            due: Some(Timestamp::EPOCH),
            is_due: true,
            back_off: Duration::ZERO,
            batch: STORE_BATCH,
            parents: HashSet::new(),
            preparing: JoinSet::new(),
            claims: true,
        }
    }

    /// Outcomes that no call waits for.
    pub(super) fn add_unanswered(&mut self, finishes: impl IntoIterator<Item = Finish>) {
        let unanswered = |finish| PendingFinish { finish, call: None };
        self.finishes.extend(finishes.into_iter().map(unanswered));
    }

    pub(super) fn remember_parents(&mut self, leases: &[Lease]) {
        // A worker that has lost leases may never report their outcomes.
        if self.parents.len() > CONCURRENCY + PREFETCH {
            self.parents.clear();
        }
        let parents = leases.iter().filter(|lease| lease.has_children);
        self.parents.extend(parents.map(|lease| lease.task));
    }
}

/// An outcome that is not committed yet, and the call that waits for it.
pub(super) struct PendingFinish {
    pub(super) finish: Finish,
    call: Option<Arc<CallState>>,
}

/// The answers of one call, collected item by item.
struct CallState {
    answers: parking_lot::Mutex<Vec<Finished>>,
    expected: usize,
    reply: parking_lot::Mutex<Option<oneshot::Sender<Vec<Finished>>>>,
}

/// Plans the next exchange after one failed. Outcomes are kept and sent again, unless one of them
/// can never be committed. The loop finds that one by leaving out the claim, then by halving the
/// batch, and releases its lease instead.
pub(super) fn recover(state: &mut State, count: usize, claimed: bool, error: &Error) {
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
    pub(super) fn settle(self, finished: Finished) {
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

pub(super) fn accept(state: &mut State, call: FinishCall) {
    let expected = call.batch.len();
    let shared = Arc::new(CallState {
        answers: parking_lot::Mutex::new(Vec::with_capacity(expected)),
        expected,
        reply: parking_lot::Mutex::new(Some(call.reply)),
    });
    let pending = |finish| PendingFinish { finish, call: Some(Arc::clone(&shared)) };
    state.finishes.extend(call.batch.into_iter().map(pending));
}
