//! What reaches a worker from outside while it works: leases that are gone, and roll calls.

use duly_core::ports::work_source::{RollCall, TakenBack, WorkSource};
use futures_util::future::BoxFuture;

/// Listens to the source.
pub(super) struct Outside<'a> {
    source: &'a dyn WorkSource,
    taken_back: BoxFuture<'a, Vec<TakenBack>>,
    roll_call: BoxFuture<'a, RollCall>,
}

/// What the source says.
pub(super) enum Word {
    /// These leases are gone.
    Gone(Vec<TakenBack>),
    /// It wants to know what has not started.
    RollCall(RollCall),
}

impl<'a> Outside<'a> {
    pub(super) fn new(source: &'a dyn WorkSource) -> Self {
        Self { source, taken_back: source.taken_back(), roll_call: source.roll_call() }
    }

    /// Waits for the next word. Dropping it loses nothing.
    pub(super) async fn word(&mut self) -> Word {
        tokio::select! {
            biased;
            leases = &mut self.taken_back => {
                self.taken_back = self.source.taken_back();
                Word::Gone(leases)
            }
            call = &mut self.roll_call => {
                self.roll_call = self.source.roll_call();
                Word::RollCall(call)
            }
        }
    }
}
