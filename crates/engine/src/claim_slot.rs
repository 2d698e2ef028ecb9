//! The slot in which a session's one claim waits for work. Two loops serve the claim: the
//! dispatcher, which claims tasks that are due, and the submitter, which hands new tasks over as
//! it stores them. The loop that takes the claim serves it or puts it back.
//!
//! The slot numbers the claims of a local worker; leases that the worker no longer waits for are
//! released. A remote worker numbers its claims itself. Leases that it did not receive stay
//! granted, because it repeats the claim with the same number.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use duly_core::lease::Lease;
use duly_core::limits::{CONCURRENCY, PREFETCH};
use duly_core::name::Lane;
use duly_core::ports::store::{Claim, OpenSession};
use duly_core::ports::work_source::{TakenBack, Why};
use duly_core::time::Timestamp;
use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::sync::{Notify, oneshot};

/// A claim that has not been served.
#[derive(Debug)]
pub(crate) struct WaitingClaim {
    pub(crate) claim: Claim,
    /// Whether the worker repeats the claim if it gets no answer.
    repeatable: bool,
    /// Whether the store was asked for it.
    tried: bool,
    reply: oneshot::Sender<Vec<Lease>>,
    /// Set while the dispatcher or the submitter holds the claim.
    taken: Option<TakenClaim>,
}

impl WaitingClaim {
    fn deliver(self, leases: Vec<Lease>) -> Delivery {
        let repeatable = self.repeatable;
        match self.reply.send(leases) {
            Ok(()) => Delivery::Delivered,
            Err(_) if repeatable => Delivery::Kept,
            Err(leases) => Delivery::Orphaned(leases),
        }
    }

    /// Whether the worker still waits for the answer.
    fn is_awaited(&self) -> bool {
        !self.reply.is_closed()
    }
}

/// The number of claims that the dispatcher or the submitter holds.
#[derive(Debug, Default)]
struct TakenClaims {
    count: AtomicUsize,
    none: Notify,
}

/// Counts one taken claim until it is dropped, so that a claim that is dropped unserved counts
/// no longer.
#[derive(Debug)]
struct TakenClaim(Arc<TakenClaims>);

impl TakenClaim {
    fn new(claims: &Arc<TakenClaims>) -> Self {
        claims.count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(claims))
    }
}

impl Drop for TakenClaim {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.none.notify_waiters();
        }
    }
}

/// What happened to the leases that a claim got.
enum Delivery {
    Delivered,
    /// The worker no longer waits; it repeats the claim with the same number.
    Kept,
    /// The worker no longer waits, and its next claim has another number.
    Orphaned(Vec<Lease>),
}

/// The slots of all sessions that claim through this node.
pub(crate) type ClaimSlots = Arc<RwLock<Vec<Arc<ClaimSlot>>>>;

/// The claim slot of one session, with what else the session's worker waits for: hints for its
/// dispatcher, leases that were taken back, and whether it drains.
#[derive(Debug)]
pub(crate) struct ClaimSlot {
    session: OpenSession,
    state: Mutex<State>,
    changed: Notify,
    lost: Notify,
    taken: Arc<TakenClaims>,
}

#[derive(Debug, Default)]
struct State {
    sequence: u64,
    waiting: Option<WaitingClaim>,
    /// The submitter took the claim and had no task for it. The dispatcher gets it next: a stream
    /// of submits must not keep the claim from tasks that are already due.
    reserved: bool,
    /// The earliest hint since the dispatcher last looked.
    hint: Option<Timestamp>,
    /// The number of a claim that its worker gave up while a loop held it: it is not put back.
    withdrawn: Option<u64>,
    /// Leases that are gone and that the worker was not told about.
    taken_back: Vec<TakenBack>,
    /// Whether the session drains: its claims wait and are granted nothing.
    draining: bool,
    closed: bool,
}

impl ClaimSlot {
    pub(crate) fn new(session: OpenSession) -> Self {
        Self {
            session,
            state: Mutex::default(),
            changed: Notify::new(),
            lost: Notify::new(),
            taken: Arc::default(),
        }
    }

    pub(crate) fn session(&self) -> &OpenSession {
        &self.session
    }

    /// Places a claim and gives the session's previous claim up. `None` when closed.
    pub(crate) fn place(&self, max: usize) -> Option<oneshot::Receiver<Vec<Lease>>> {
        let mut state = self.state.lock();
        state.sequence += 1;
        let claim = Claim::new(self.session.id, state.sequence, max);
        self.place_in(state, claim, false)
    }

    /// Places a claim that the worker has numbered. The store is asked at once, since it may
    /// have granted leases to this number before.
    pub(crate) fn place_numbered(&self, claim: Claim) -> Option<oneshot::Receiver<Vec<Lease>>> {
        let mut state = self.state.lock();
        state.hint = Some(Timestamp::EPOCH);
        self.place_in(state, claim, true)
    }

    fn place_in(
        &self,
        mut state: MutexGuard<'_, State>,
        claim: Claim,
        repeatable: bool,
    ) -> Option<oneshot::Receiver<Vec<Lease>>> {
        if state.closed {
            return None;
        }
        let (reply, leases) = oneshot::channel();
        state.waiting = Some(WaitingClaim { claim, repeatable, tried: false, reply, taken: None });
        state.reserved = false;
        state.withdrawn = None;
        drop(state);
        self.changed.notify_one();
        Some(leases)
    }

    /// Raises the number of leases that the waiting claim accepts. A taken claim stays as it is.
    pub(crate) fn widen(&self, max: usize) {
        if let Some(waiting) = &mut self.state.lock().waiting {
            waiting.claim.max = waiting.claim.max.max(max);
        }
    }

    /// Gives a claim up: now, or when the loop that holds it puts it back. Until then it may still
    /// be served. A claim for which the store was not asked stays until it was: the dispatcher is
    /// about to take it.
    pub(crate) fn withdraw(&self, sequence: u64) {
        let mut state = self.state.lock();
        state.withdrawn = Some(sequence);
        let will_ask = !state.draining;
        let stays = |it: &WaitingClaim| it.claim.sequence != sequence || (!it.tried && will_ask);
        state.waiting = state.waiting.take().filter(stays);
    }

    /// Serves a claim that was taken from this slot. The caller releases the returned leases.
    pub(crate) fn serve(&self, waiting: WaitingClaim, leases: Vec<Lease>) -> Vec<Lease> {
        match waiting.deliver(leases) {
            Delivery::Delivered => Vec::new(),
            Delivery::Kept => {
                // If the same number already waits again, the store is asked for it at once.
                self.hint(Timestamp::EPOCH);
                Vec::new()
            }
            Delivery::Orphaned(leases) => leases,
        }
    }

    /// Answers a claim whose leases the server has ended itself. A worker that numbers its claims must
    /// see them, or it would repeat a number that is used up: it gets them together with the news that
    /// they are gone. A claim of a local worker waits on under another number.
    pub(crate) fn serve_without(&self, waiting: WaitingClaim, ended: Vec<Lease>) {
        if waiting.repeatable {
            for lease in &ended {
                let (task, epoch) = (lease.task, lease.epoch);
                self.take_back(TakenBack { task, epoch, why: Why::Cancelled });
            }
            self.serve(waiting, ended);
            return;
        }
        let mut waiting = waiting;
        {
            let mut state = self.state.lock();
            state.sequence += 1;
            waiting.claim.sequence = state.sequence;
        }
        self.hint(Timestamp::EPOCH);
        self.put_back(waiting);
    }

    /// Takes the claim for tasks that are due, unless its worker has gone or drains.
    pub(crate) fn take(&self) -> Option<WaitingClaim> {
        self.take_from(&mut self.state.lock())
    }

    fn take_from(&self, state: &mut State) -> Option<WaitingClaim> {
        if state.draining {
            return None;
        }
        let mut waiting = state.waiting.take().filter(WaitingClaim::is_awaited)?;
        waiting.taken = Some(TakenClaim::new(&self.taken));
        Some(waiting)
    }

    /// Takes the claim for a new task of this lane, unless the claim does not accept the lane or
    /// is reserved for the dispatcher.
    pub(crate) fn take_for_new(&self, lane: &Lane) -> Option<WaitingClaim> {
        if !self.session.serves(lane) {
            return None;
        }
        let mut state = self.state.lock();
        let accepts = state.waiting.as_ref().is_some_and(|it| it.claim.accepts(lane));
        if state.reserved || !accepts {
            return None;
        }
        self.take_from(&mut state)
    }

    /// Puts a claim back for which the store had no task, unless a newer one was placed meanwhile.
    pub(crate) fn put_back(&self, waiting: WaitingClaim) {
        self.restore(WaitingClaim { tried: true, ..waiting }, false);
    }

    /// Puts an unserved claim back and reserves it for the dispatcher.
    pub(crate) fn put_back_for_dispatcher(&self, waiting: WaitingClaim) {
        self.restore(waiting, true);
    }

    fn restore(&self, waiting: WaitingClaim, reserved: bool) {
        let mut state = self.state.lock();
        let wanted = state.withdrawn != Some(waiting.claim.sequence) && waiting.is_awaited();
        if state.waiting.is_none() && !state.closed && wanted {
            state.waiting = Some(WaitingClaim { taken: None, ..waiting });
            state.reserved = reserved;
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Tells the dispatcher whether a claim waits, and ends the claim's reservation for it.
    pub(crate) fn is_waiting(&self) -> bool {
        let mut state = self.state.lock();
        state.reserved = false;
        let waits = state.waiting.as_ref().is_some_and(WaitingClaim::is_awaited);
        waits && !state.draining
    }

    /// Starts or ends a drain.
    pub(crate) fn set_draining(&self, draining: bool) {
        let mut state = self.state.lock();
        state.draining = draining;
        if draining {
            // A withdrawn claim waits only for the store's answer, which a drain rules out.
            let withdrawn = state.withdrawn;
            state.waiting = state.waiting.take().filter(|it| Some(it.claim.sequence) != withdrawn);
        }
        drop(state);
        self.changed.notify_one();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.state.lock().draining
    }

    /// Waits until no loop holds a claim: a claim that was taken before a drain has then been
    /// granted what it gets.
    pub(crate) async fn taken_claims_ended(&self) {
        loop {
            let mut none = pin!(self.taken.none.notified());
            none.as_mut().enable();
            if self.taken.count.load(Ordering::SeqCst) == 0 {
                return;
            }
            none.await;
        }
    }

    /// Whether a claim waits that accepts tasks of this lane.
    pub(crate) fn has_claim_for(&self, lane: &Lane) -> bool {
        if !self.session.serves(lane) {
            return false;
        }
        let state = self.state.lock();
        let waits = |it: &WaitingClaim| it.is_awaited() && it.claim.accepts(lane);
        state.waiting.as_ref().is_some_and(waits)
    }

    /// Tells the dispatcher that a task is due at this time.
    pub(crate) fn hint(&self, due: Timestamp) {
        let mut state = self.state.lock();
        state.hint = Some(state.hint.map_or(due, |known| known.min(due)));
        drop(state);
        self.changed.notify_one();
    }

    /// The earliest hint since the last call.
    pub(crate) fn take_hint(&self) -> Option<Timestamp> {
        self.state.lock().hint.take()
    }

    /// Waits until a claim is placed or put back, or a hint arrives.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Tells the worker that one of its leases is gone.
    pub(crate) fn take_back(&self, lease: TakenBack) {
        let mut state = self.state.lock();
        // Bounded, since a worker may never ask. Such a worker learns it when it finishes.
        if state.taken_back.len() < CONCURRENCY + PREFETCH {
            state.taken_back.push(lease);
        }
        drop(state);
        self.lost.notify_one();
    }

    /// Leases that are gone and that the worker was not told about.
    pub(crate) fn take_taken_back(&self) -> Vec<TakenBack> {
        std::mem::take(&mut self.state.lock().taken_back)
    }

    /// Waits for leases that are gone.
    pub(crate) async fn taken_back(&self) -> Vec<TakenBack> {
        loop {
            let leases = self.take_taken_back();
            if !leases.is_empty() {
                return leases;
            }
            self.lost.notified().await;
        }
    }

    /// Gives the waiting claim up and refuses new ones.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.waiting = None;
    }
}

#[cfg(test)]
mod tests;
