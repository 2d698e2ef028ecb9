//! What the loops and the worker share: the session, its leases and its claims.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::SessionId;
use duly_core::lease::Lease;
use duly_core::ports::random::Random;
use duly_core::ports::work_source::{TakenBack, UnstartedReply};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::claim_queue::ClaimQueue;
use super::held_leases::{ClaimId, HeldLeases};
use super::retry_policy::RetryPolicy;
use crate::error::Error;
use crate::http::Client;
use crate::wire::lease::duration;
use crate::wire::{RegisterRequest, Registration};

/// The heartbeat interval if the server names none that is valid.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// One worker's session with one server.
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) random: Arc<dyn Random>,
    worker: RegisterRequest,
    pub(super) session: watch::Sender<Session>,
    /// Locked while the next session is opened, so that only one is.
    opening: tokio::sync::Mutex<()>,
    /// Locked while the session changes, so that no lease is filed under the wrong session.
    pub(super) held: Mutex<HeldLeases>,
    pub(super) claim_queue: ClaimQueue,
    pub(super) gone: mpsc::UnboundedSender<Vec<TakenBack>>,
    pub(super) unstarted_requests: mpsc::Sender<UnstartedReply>,
    pub(super) closed: CancellationToken,
}

/// An open session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) heartbeat: Duration,
}

impl From<Registration> for Session {
    fn from(registration: Registration) -> Self {
        let heartbeat = duration(registration.heartbeat_seconds);
        let heartbeat = heartbeat.filter(|interval| !interval.is_zero()).unwrap_or(HEARTBEAT);
        Self { id: registration.session_id, heartbeat }
    }
}

impl Connection {
    pub(super) fn new(
        client: Client,
        worker: RegisterRequest,
        random: Arc<dyn Random>,
        registration: Registration,
        gone: mpsc::UnboundedSender<Vec<TakenBack>>,
        unstarted_requests: mpsc::Sender<UnstartedReply>,
    ) -> Self {
        Self {
            client,
            random,
            worker,
            session: watch::Sender::new(registration.into()),
            opening: tokio::sync::Mutex::default(),
            held: Mutex::default(),
            claim_queue: ClaimQueue::default(),
            gone,
            unstarted_requests,
            closed: CancellationToken::new(),
        }
    }

    /// Adds leases from the server. Drops those of a session that was lost meanwhile.
    pub(super) fn receive(&self, claim: ClaimId, leases: Vec<Lease>) {
        let mut held = self.held.lock();
        if self.session.borrow().id == claim.session {
            held.add(claim, &leases);
            self.claim_queue.add(leases);
        }
    }

    /// Opens another session after the server ended this one, unless the other loop has done so
    /// already.
    pub(super) async fn reopen(&self, lost: SessionId) {
        let _opening = self.opening.lock().await;
        if self.session.borrow().id != lost {
            return;
        }
        tracing::warn!(session.id = %lost, "the server took this worker for dead");
        let mut retry_policy = RetryPolicy::new("register");
        let registration = loop {
            match self.client.register(&self.worker).await {
                Ok(registration) => break registration,
                Err(error) => {
                    tokio::time::sleep(retry_policy.delay_after(&error, &*self.random)).await
                }
            }
        };
        let session = Session::from(registration);
        tracing::warn!(session.id = %session.id, "registered again");
        let gone = {
            let mut held = self.held.lock();
            self.session.send_replace(session);
            // The worker has not taken these, so it sends no outcomes for them.
            let kept: Vec<_> = self.claim_queue.clear().iter().map(Lease::release).collect();
            held.remove(&kept);
            held.lost_with(lost)
        };
        self.report_gone(gone);
    }

    /// Tells the worker which leases are gone.
    pub(super) fn report_gone(&self, gone: Vec<TakenBack>) {
        if !gone.is_empty() {
            // Sending fails only after the worker was dropped.
            let _ = self.gone.send(gone);
        }
    }
}

/// Whether the error says that there is no such session.
pub(super) fn session_is_gone(error: &Error) -> bool {
    error.code() == Some("SESSION_NOT_FOUND")
}

/// Whether the same call may succeed later. Only a refusal by the server itself is final: an
/// unexpected answer may come from a proxy while the server is down, and permission may be granted
/// again.
pub(super) fn is_temporary(error: &Error) -> bool {
    match error {
        Error::Problem { problem, .. } => matches!(problem.status, 401 | 403 | 408 | 429 | 500..),
        Error::Unreachable { .. } | Error::Unexpected { .. } => true,
        Error::BadAddress { .. } | Error::BadToken | Error::BadAuthorities => false,
    }
}
