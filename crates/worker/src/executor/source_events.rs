//! What the work source sends to a worker: leases that are gone, and roll calls.

use duly_core::ports::work_source::{TakenBack, UnstartedReply, WorkSource};
use futures_util::future::BoxFuture;

/// The events of one source.
pub(super) struct SourceEvents<'a> {
    source: &'a dyn WorkSource,
    taken_back: BoxFuture<'a, Vec<TakenBack>>,
    unstarted_request: BoxFuture<'a, UnstartedReply>,
}

pub(super) enum SourceEvent {
    /// These leases are gone.
    TakenBack(Vec<TakenBack>),
    /// The source asks which leases have not started.
    UnstartedReply(UnstartedReply),
}

impl<'a> SourceEvents<'a> {
    pub(super) fn new(source: &'a dyn WorkSource) -> Self {
        Self {
            source,
            taken_back: source.taken_back(),
            unstarted_request: source.unstarted_request(),
        }
    }

    /// Waits for the next event. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> SourceEvent {
        tokio::select! {
            biased;
            leases = &mut self.taken_back => {
                self.taken_back = self.source.taken_back();
                SourceEvent::TakenBack(leases)
            }
            call = &mut self.unstarted_request => {
                self.unstarted_request = self.source.unstarted_request();
                SourceEvent::UnstartedReply(call)
            }
        }
    }
}
