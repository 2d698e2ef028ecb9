//! Tells the loops of this node that events were written. A hint may be lost, so each of them looks by
//! itself now and then.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::NodeId;
use duly_core::ports::store::Store;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How often to look without a hint: on a store of this process alone, and on a shared one.
const SAFETY_POLL: Duration = Duration::from_secs(30);
const SHARED_POLL: Duration = Duration::from_secs(1);

/// Counts the hints.
#[derive(Debug)]
pub(crate) struct Written(watch::Sender<u64>);

impl Default for Written {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Written {
    /// A listener, which hears of everything from now on.
    pub(crate) fn listen(&self, store: &dyn Store) -> Listener {
        let is_alone = store.node() == NodeId::ONLY;
        let poll = if is_alone { SAFETY_POLL } else { SHARED_POLL };
        Listener { hints: self.0.subscribe(), poll }
    }
}

/// Hears hints.
#[derive(Debug)]
pub(crate) struct Listener {
    hints: watch::Receiver<u64>,
    poll: Duration,
}

impl Listener {
    /// What was written up to now is about to be read.
    pub(crate) fn forget(&mut self) {
        self.hints.mark_unchanged();
    }

    /// Waits until something was written since [`Self::forget`], or until it is time to look.
    pub(crate) async fn heard(&mut self) {
        tokio::select! {
            // The sender lives as long as the engine.
            _ = self.hints.changed() => {}
            () = tokio::time::sleep(self.poll) => {}
        }
    }
}

/// Passes the store's hints on to all listeners.
pub(crate) async fn pass_event_hints(
    store: Arc<dyn Store>,
    written: Arc<Written>,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = store.event_hint() => written.0.send_modify(|count| *count += 1),
        }
    }
}
