//! The loop that cancels tasks which can no longer start: a condition of theirs cannot hold any more,
//! or their workflow was cancelled or fails fast.
//!
//! It sleeps until something on this node may have given it work. Ends on other nodes and in
//! applications' transactions show in hints, or in the next look without one.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::NodeId;
use duly_core::limits::CASCADE_STEP;
use duly_core::ports::store::{Error, Store};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::attached_sessions::AttachedSessions;

/// How long ends that seldom give work are collected before a look: a look costs little, but tasks
/// without edges should not pay even that.
const COLLECT: Duration = Duration::from_millis(50);
/// The least time between two looks.
const GAP: Duration = Duration::from_millis(5);
/// How often to look without a wake-up: on a store of this process alone, and on a shared one.
const SAFETY_POLL: Duration = Duration::from_secs(30);
const SHARED_POLL: Duration = Duration::from_secs(2);
/// How long to wait after the store did not answer.
const BACK_OFF: Duration = Duration::from_secs(1);

/// Wakes the loop.
#[derive(Debug, Default)]
pub(crate) struct CascadeBell {
    now: Notify,
    soon: Notify,
}

impl CascadeBell {
    /// There is probably work.
    pub(crate) fn ring(&self) {
        self.now.notify_one();
    }

    /// There may be work.
    pub(crate) fn ring_soon(&self) {
        self.soon.notify_one();
    }
}

pub(crate) struct Cascade {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sessions: Arc<AttachedSessions>,
}

impl Cascade {
    /// Runs until shutdown.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.keep_going() => {}
        }
    }

    async fn keep_going(&self) {
        loop {
            match self.run_once().await {
                Ok(()) => {
                    tokio::time::sleep(GAP).await;
                    self.wait().await;
                }
                Err(error) => {
                    tracing::debug!(%error, "tasks that cannot start wait for the store");
                    tokio::time::sleep(BACK_OFF).await;
                }
            }
        }
    }

    async fn wait(&self) {
        let bell = &self.sessions.cascade_bell;
        let is_alone = self.store.node() == NodeId::ONLY;
        let poll = if is_alone { SAFETY_POLL } else { SHARED_POLL };
        tokio::select! {
            () = bell.now.notified() => {}
            () = bell.soon.notified() => tokio::select! {
                () = bell.now.notified() => {}
                () = tokio::time::sleep(COLLECT) => {}
            },
            () = tokio::time::sleep(poll) => {}
        }
    }

    /// Cancels all that there is to cancel, page by page.
    async fn run_once(&self) -> Result<(), Error> {
        loop {
            let step = self.store.cascade(CASCADE_STEP).await?;
            self.sessions.tell_cancelled(step.cancelled);
            if !step.more {
                return Ok(());
            }
        }
    }
}
