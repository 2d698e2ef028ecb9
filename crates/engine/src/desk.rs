//! Where a session's claim waits for work. Two parties serve it: the dispatcher, which claims
//! what is due, and the submitter, which hands new tasks over as it stores them. Whoever takes
//! the claim serves it or puts it back.

use duly_core::id::SessionId;
use duly_core::lease::Lease;
use duly_core::limits::STORE_BATCH;
use duly_core::ports::store::Claim;
use duly_core::ports::work_source::TakenBack;
use duly_core::time::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

/// A worker's claim that has not been served.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) claim: Claim,
    reply: oneshot::Sender<Vec<Lease>>,
}

impl Waiting {
    /// Hands the leases over; gives them back if the worker no longer waits.
    pub(crate) fn serve(self, leases: Vec<Lease>) -> Result<(), Vec<Lease>> {
        self.reply.send(leases)
    }
}

/// One session's place to wait.
#[derive(Debug)]
pub(crate) struct Desk {
    session: SessionId,
    state: Mutex<State>,
    changed: Notify,
    lost: Notify,
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
    /// Leases that the worker is to be told are gone.
    taken_back: Vec<TakenBack>,
    closed: bool,
}

impl Desk {
    pub(crate) fn new(session: SessionId) -> Self {
        Self { session, state: Mutex::default(), changed: Notify::new(), lost: Notify::new() }
    }

    /// Places a claim; the session's previous one, if any, is given up. Nothing when closed.
    pub(crate) fn place(&self, max: usize) -> Option<oneshot::Receiver<Vec<Lease>>> {
        let (reply, leases) = oneshot::channel();
        let mut state = self.state.lock();
        if state.closed {
            return None;
        }
        state.sequence += 1;
        let claim = Claim { session: self.session, sequence: state.sequence, max };
        state.waiting = Some(Waiting { claim, reply });
        state.reserved = false;
        drop(state);
        self.changed.notify_one();
        Some(leases)
    }

    /// Takes the claim for what is due, unless its worker has gone.
    pub(crate) fn take(&self) -> Option<Waiting> {
        self.state.lock().waiting.take().filter(|waiting| !waiting.reply.is_closed())
    }

    /// Takes the claim for tasks that are being submitted, unless the dispatcher is to have it.
    pub(crate) fn take_for_new(&self) -> Option<Waiting> {
        let mut state = self.state.lock();
        if state.reserved {
            return None;
        }
        state.waiting.take().filter(|waiting| !waiting.reply.is_closed())
    }

    /// Puts an unserved claim back, unless a newer one was placed meanwhile.
    pub(crate) fn put_back(&self, waiting: Waiting) {
        self.restore(waiting, false);
    }

    /// Puts an unserved claim back for the dispatcher.
    pub(crate) fn pass_on(&self, waiting: Waiting) {
        self.restore(waiting, true);
    }

    fn restore(&self, waiting: Waiting, reserved: bool) {
        let mut state = self.state.lock();
        if state.waiting.is_none() && !state.closed && !waiting.reply.is_closed() {
            state.waiting = Some(waiting);
            state.reserved = reserved;
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Whether a claim waits. The dispatcher asks, and the claim is no longer reserved for it.
    pub(crate) fn is_waiting(&self) -> bool {
        let mut state = self.state.lock();
        state.reserved = false;
        state.waiting.as_ref().is_some_and(|waiting| !waiting.reply.is_closed())
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

    /// Tells the worker that a lease is gone, should it be one of its own.
    pub(crate) fn take_back(&self, lease: TakenBack) {
        let mut state = self.state.lock();
        // A worker that never asks must not make this grow; it learns it when it finishes.
        if state.taken_back.len() < STORE_BATCH {
            state.taken_back.push(lease);
        }
        drop(state);
        self.lost.notify_one();
    }

    /// Waits for leases that are gone.
    pub(crate) async fn taken_back(&self) -> Vec<TakenBack> {
        loop {
            let leases = std::mem::take(&mut self.state.lock().taken_back);
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
