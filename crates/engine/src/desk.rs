//! Where a session's claim waits for work. Two parties serve it: the dispatcher, which claims
//! what is due, and the submitter, which hands new tasks over as it stores them. Whoever takes
//! the claim serves it or puts it back.
//!
//! A worker in this process is asked for one claim after the other, and leases that it no longer
//! waits for are given back. A worker elsewhere numbers its claims itself: what it did not get
//! stays granted, since it asks for the same number again.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use duly_core::lease::Lease;
use duly_core::limits::{CONCURRENCY, PREFETCH};
use duly_core::name::Lane;
use duly_core::ports::store::{Claim, OpenSession};
use duly_core::ports::work_source::TakenBack;
use duly_core::time::Timestamp;
use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::sync::{Notify, oneshot};

/// A worker's claim that has not been served.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) claim: Claim,
    /// Whether the worker asks again for what it did not get.
    repeatable: bool,
    /// Whether the store was asked for it.
    tried: bool,
    reply: oneshot::Sender<Vec<Lease>>,
    /// Held while the dispatcher or the submitter has it.
    out: Option<Out>,
}

impl Waiting {
    /// Hands the leases over. Those that come back are nobody's and have to be released.
    fn serve(self, leases: Vec<Lease>) -> Served {
        let repeatable = self.repeatable;
        match self.reply.send(leases) {
            Ok(()) => Served::Delivered,
            Err(_) if repeatable => Served::Kept,
            Err(leases) => Served::Orphaned(leases),
        }
    }
}

/// Claims that are out, at the dispatcher or at the submitter.
#[derive(Debug, Default)]
struct OutCount {
    count: AtomicUsize,
    none: Notify,
}

/// One claim that is out; also one that is dropped on the way comes to an end.
#[derive(Debug)]
struct Out(Arc<OutCount>);

impl Out {
    fn new(count: &Arc<OutCount>) -> Self {
        count.count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.none.notify_waiters();
        }
    }
}

/// What became of leases that were handed to a claim.
enum Served {
    Delivered,
    /// The worker no longer waited; it asks for the same number again.
    Kept,
    /// The worker no longer waited, and asks for another number next.
    Orphaned(Vec<Lease>),
}

/// The desks of all sessions that claim here.
pub(crate) type Desks = Arc<RwLock<Vec<Arc<Desk>>>>;

/// One session's place to wait.
#[derive(Debug)]
pub(crate) struct Desk {
    session: OpenSession,
    state: Mutex<State>,
    changed: Notify,
    lost: Notify,
    out: Arc<OutCount>,
}

#[derive(Debug, Default)]
struct State {
    sequence: u64,
    waiting: Option<Waiting>,
    /// The submitter had the claim and found no use for it: the dispatcher looks next, or a
    /// stream of submits would keep the claim from what is already due.
    reserved: bool,
    /// The earliest hint since the dispatcher looked.
    hint: Option<Timestamp>,
    /// A claim whose worker has stopped waiting while somebody had it: it is not put back.
    withdrawn: Option<u64>,
    /// Leases that the worker is to be told are gone.
    taken_back: Vec<TakenBack>,
    /// Whether the session finishes what it holds: its claims wait, and nothing is granted to them.
    draining: bool,
    closed: bool,
}

impl Desk {
    pub(crate) fn new(session: OpenSession) -> Self {
        Self {
            session,
            state: Mutex::default(),
            changed: Notify::new(),
            lost: Notify::new(),
            out: Arc::default(),
        }
    }

    /// Whose desk it is.
    pub(crate) fn session(&self) -> &OpenSession {
        &self.session
    }

    /// Places a claim; the session's previous one, if any, is given up. Nothing when closed.
    pub(crate) fn place(&self, max: usize) -> Option<oneshot::Receiver<Vec<Lease>>> {
        let mut state = self.state.lock();
        state.sequence += 1;
        let claim = Claim::new(self.session.id, state.sequence, max);
        self.place_in(state, claim, false)
    }

    /// Places a claim that its worker has numbered. The store is asked at once, since it may
    /// have granted something to this number before.
    pub(crate) fn place_as(&self, claim: Claim) -> Option<oneshot::Receiver<Vec<Lease>>> {
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
        state.waiting = Some(Waiting { claim, repeatable, tried: false, reply, out: None });
        state.reserved = false;
        state.withdrawn = None;
        drop(state);
        self.changed.notify_one();
        Some(leases)
    }

    /// Raises what the claim that waits here may bring. One that somebody has taken stays as it is.
    pub(crate) fn widen(&self, max: usize) {
        if let Some(waiting) = &mut self.state.lock().waiting {
            waiting.claim.max = waiting.claim.max.max(max);
        }
    }

    /// Gives up a claim, now or when whoever has it wants to put it back. Until then it may still
    /// be served. One that the store was never asked for stays until it was: the dispatcher is on
    /// its way.
    pub(crate) fn withdraw(&self, sequence: u64) {
        let mut state = self.state.lock();
        state.withdrawn = Some(sequence);
        let asks = !state.draining;
        let stays = |it: &Waiting| it.claim.sequence != sequence || (!it.tried && asks);
        state.waiting = state.waiting.take().filter(stays);
    }

    /// Serves a claim that was taken from here. Leases that come back are to be released.
    pub(crate) fn serve(&self, waiting: Waiting, leases: Vec<Lease>) -> Vec<Lease> {
        match waiting.serve(leases) {
            Served::Delivered => Vec::new(),
            Served::Kept => {
                // Should the same number be waiting again, the store is asked for it at once.
                self.hint(Timestamp::EPOCH);
                Vec::new()
            }
            Served::Orphaned(leases) => leases,
        }
    }

    /// Takes the claim for what is due, unless its worker has gone or drains.
    pub(crate) fn take(&self) -> Option<Waiting> {
        self.take_out(&mut self.state.lock())
    }

    fn take_out(&self, state: &mut State) -> Option<Waiting> {
        if state.draining {
            return None;
        }
        let mut waiting = state.waiting.take().filter(|waiting| !waiting.reply.is_closed())?;
        waiting.out = Some(Out::new(&self.out));
        Some(waiting)
    }

    /// Takes the claim for a task of this lane that is being submitted, unless the claim is not for
    /// such tasks or the dispatcher is to have it.
    pub(crate) fn take_for_new(&self, lane: &Lane) -> Option<Waiting> {
        if !self.session.serves(lane) {
            return None;
        }
        let mut state = self.state.lock();
        let accepts = state.waiting.as_ref().is_some_and(|it| it.claim.accepts(lane));
        if state.reserved || !accepts {
            return None;
        }
        self.take_out(&mut state)
    }

    /// Puts a claim back for which the store had nothing, unless a newer one was placed meanwhile.
    pub(crate) fn put_back(&self, waiting: Waiting) {
        self.restore(Waiting { tried: true, ..waiting }, false);
    }

    /// Puts an unserved claim back for the dispatcher.
    pub(crate) fn pass_on(&self, waiting: Waiting) {
        self.restore(waiting, true);
    }

    fn restore(&self, waiting: Waiting, reserved: bool) {
        let mut state = self.state.lock();
        let wanted = state.withdrawn != Some(waiting.claim.sequence) && !waiting.reply.is_closed();
        if state.waiting.is_none() && !state.closed && wanted {
            state.waiting = Some(Waiting { out: None, ..waiting });
            state.reserved = reserved;
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Whether a claim waits. The dispatcher asks, and the claim is no longer reserved for it.
    pub(crate) fn is_waiting(&self) -> bool {
        let mut state = self.state.lock();
        state.reserved = false;
        let waits = state.waiting.as_ref().is_some_and(|waiting| !waiting.reply.is_closed());
        waits && !state.draining
    }

    /// Says whether the session drains. While it does, its claims wait and are granted nothing.
    pub(crate) fn set_draining(&self, draining: bool) {
        let mut state = self.state.lock();
        state.draining = draining;
        if draining {
            // The worker of this one has stopped waiting, and nothing comes for it any more.
            let given_up = state.withdrawn;
            state.waiting = state.waiting.take().filter(|it| Some(it.claim.sequence) != given_up);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Whether the session drains.
    pub(crate) fn is_draining(&self) -> bool {
        self.state.lock().draining
    }

    /// Waits until no claim is out, so that one that was taken before a drain has been granted
    /// what it gets.
    pub(crate) async fn claims_ended(&self) {
        loop {
            let mut none = pin!(self.out.none.notified());
            none.as_mut().enable();
            if self.out.count.load(Ordering::SeqCst) == 0 {
                return;
            }
            none.await;
        }
    }

    /// Whether a claim waits that may be granted tasks of this lane.
    pub(crate) fn has_claim_for(&self, lane: &Lane) -> bool {
        if !self.session.serves(lane) {
            return false;
        }
        let state = self.state.lock();
        let waits = |it: &Waiting| !it.reply.is_closed() && it.claim.accepts(lane);
        state.waiting.as_ref().is_some_and(waits)
    }

    /// Something is due at this time.
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

    /// Waits until a claim was placed or put back, or a hint came.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Tells the worker that a lease of its own is gone.
    pub(crate) fn take_back(&self, lease: TakenBack) {
        let mut state = self.state.lock();
        // A worker that never asks must not make this grow; it learns it when it finishes.
        if state.taken_back.len() < CONCURRENCY + PREFETCH {
            state.taken_back.push(lease);
        }
        drop(state);
        self.lost.notify_one();
    }

    /// Leases that are gone and were not told of yet.
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

    /// Gives up the claim that waits and refuses new ones.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.waiting = None;
    }
}

#[cfg(test)]
mod tests;
