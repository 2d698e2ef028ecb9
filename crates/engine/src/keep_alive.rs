//! The loop that keeps this node and the sessions of its local workers alive, where other nodes
//! share the store.
//!
//! When another node has ended a session, this loop detaches it: its work source closes, and the
//! worker opens another session. The store refuses outcomes of the old one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use duly_core::ports::store::{self, JoinNode, Store};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::attached_sessions::AttachedSessions;
use crate::renewal::Renewal;
use crate::settings::CurrentSettings;
use crate::tenants::Tenants;

pub(crate) struct KeepAlive {
    pub(crate) renewal: Renewal,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sessions: Arc<AttachedSessions>,
    pub(crate) settings: Arc<CurrentSettings>,
    pub(crate) tenants: Arc<Tenants>,
    /// How this node has introduced itself to the other nodes.
    pub(crate) introduced: Arc<Mutex<Option<JoinNode>>>,
    /// Whether the last sign of life failed: the other nodes may have removed this node.
    pub(crate) absent: bool,
    /// Tells the observer that the store may have refused the heartbeats of other processes too.
    pub(crate) refused: Arc<AtomicBool>,
}

impl KeepAlive {
    /// Runs until shutdown.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        loop {
            let was_absent = self.absent;
            let pause = match self.run_once().await {
                Ok(()) => {
                    if was_absent {
                        tracing::warn!("the store is available again");
                    }
                    self.renewal.interval()
                }
                Err(error) => {
                    if !was_absent {
                        tracing::warn!(
                            %error, "no sign of life reaches the store; other nodes may take over"
                        );
                    }
                    self.absent = true;
                    self.refused.store(true, Ordering::Relaxed);
                    self.renewal.retry_delay()
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
                () = self.pass_on_revocations() => {}
            }
        }
    }

    /// Tells workers at once when the store signals that leases were revoked. Never returns.
    async fn pass_on_revocations(&self) {
        loop {
            self.store.revocation().await;
            if let Err(error) = self.take_back_revoked().await {
                tracing::debug!(%error, "the next sign of life tells workers of revoked leases");
            }
        }
    }

    /// Tells workers which of their leases a cancel has revoked, possibly through another node.
    async fn take_back_revoked(&self) -> store::Result<()> {
        let mut sessions = self.sessions.local_ids();
        sessions.extend(self.sessions.remote_ids());
        for (session, lease) in self.store.revoked(sessions).await? {
            self.sessions.take_back(session, lease);
        }
        Ok(())
    }

    /// Gives one sign of life for the node and its sessions.
    async fn run_once(&mut self) -> store::Result<()> {
        let ended = self.store.keep_alive(self.sessions.local_ids()).await?;
        for session in &ended {
            tracing::warn!(
                session.id = %session,
                "another node ended the session of a local worker; the worker starts again"
            );
            self.sessions.detach_local(*session);
        }
        if self.absent || !ended.is_empty() {
            self.introduce().await?;
            self.absent = false;
        }
        self.update_draining().await?;
        self.take_back_revoked().await?;
        // This is how the node learns of settings that another node has changed.
        if let Err(error) = self.settings.read().await {
            tracing::debug!(%error, "cannot read the settings");
        }
        if let Err(error) = self.tenants.refresh().await {
            tracing::debug!(%error, "cannot read the records of tenants");
        }
        Ok(())
    }

    /// Reads which local workers drain: the drain may have been requested through another node.
    async fn update_draining(&self) -> store::Result<()> {
        let own = self.sessions.local_ids();
        let draining = self.store.draining(own.clone()).await?;
        for session in own {
            self.sessions.set_draining(session, draining.contains(&session));
        }
        Ok(())
    }

    /// Introduces the node to the other nodes again.
    async fn introduce(&self) -> store::Result<()> {
        let introduced = self.introduced.lock().clone();
        match introduced {
            Some(node) => self.store.join(node).await,
            None => Ok(()),
        }
    }
}
