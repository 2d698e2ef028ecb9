//! The loop that keeps this node and the sessions of its own workers alive, where others could take
//! them for dead.
//!
//! A session that others have ended is closed here: its worker is told that there is no more work,
//! and opens another one. What it still wants to commit is refused by the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use duly_core::id::NodeId;
use duly_core::ports::store::{self, JoinNode, Store};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::pace::Pace;
use crate::remotes::Remotes;
use crate::settings::Current;

/// What one sign of life has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Sessions of this process that others had ended.
    pub(crate) ended: usize,
}

pub(crate) struct KeepAlive {
    pub(crate) pace: Pace,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) remotes: Arc<Remotes>,
    pub(crate) settings: Arc<Current>,
    /// How this node has introduced itself.
    pub(crate) introduced: Arc<Mutex<Option<JoinNode>>>,
    /// Whether others may have forgotten this node.
    pub(crate) absent: bool,
    /// Tells whoever judges others that theirs may have been refused as well.
    pub(crate) refused: Arc<AtomicBool>,
}

impl KeepAlive {
    /// Goes on until shut down.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        loop {
            let was_absent = self.absent;
            let pause = match self.run_once().await {
                Ok(_) => {
                    if was_absent {
                        tracing::warn!("the store is back");
                    }
                    self.pace.every()
                }
                Err(error) => {
                    if !was_absent {
                        tracing::warn!(
                            %error, "no sign of life reaches the store; others may take over"
                        );
                    }
                    self.absent = true;
                    self.refused.store(true, Ordering::Relaxed);
                    self.pace.back_off()
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
                () = self.hear_revocations() => {}
            }
        }
    }

    /// Tells workers at once which of their leases are gone, for ever.
    async fn hear_revocations(&self) {
        loop {
            self.store.revocation().await;
            if let Err(error) = self.tell_revoked().await {
                tracing::debug!(%error, "cancelled leases are told with the next sign of life");
            }
        }
    }

    /// Tells workers which of their leases a cancel has taken back, perhaps through another node.
    async fn tell_revoked(&self) -> store::Result<()> {
        let mut sessions = self.remotes.local_ids();
        sessions.extend(self.remotes.ids());
        for (session, lease) in self.store.revoked(sessions).await? {
            self.remotes.take_back(session, lease);
        }
        Ok(())
    }

    /// One sign of life of everything in this process.
    async fn run_once(&mut self) -> store::Result<Report> {
        let ended = self.store.keep_alive(self.remotes.local_ids()).await?;
        for session in &ended {
            tracing::warn!(
                session.id = %session,
                "others took a worker of this node for dead; it starts again"
            );
            self.remotes.close_local(*session);
        }
        if self.absent || !ended.is_empty() {
            self.introduce().await?;
            self.absent = false;
        }
        self.learn_draining().await?;
        self.tell_revoked().await?;
        // Another node may have changed them, and has no other way to say so.
        if let Err(error) = self.settings.read().await {
            tracing::debug!(%error, "the settings cannot be read");
        }
        Ok(Report { ended: ended.len() })
    }

    /// Learns which workers of this node drain, where another node may have been told.
    async fn learn_draining(&self) -> store::Result<()> {
        if self.store.node() == NodeId::ONLY {
            return Ok(());
        }
        let own = self.remotes.local_ids();
        let draining = self.store.draining(own.clone()).await?;
        for session in own {
            self.remotes.set_draining(session, draining.contains(&session));
        }
        Ok(())
    }

    /// Makes the node known once more.
    async fn introduce(&self) -> store::Result<()> {
        let introduced = self.introduced.lock().clone();
        match introduced {
            Some(node) => self.store.join(node).await,
            None => Ok(()),
        }
    }
}
