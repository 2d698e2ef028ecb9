//! What the loops and the worker share: the session, and what is held under it.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::SessionId;
use duly_core::lease::Lease;
use duly_core::ports::random::Random;
use duly_core::ports::work_source::{RollCall, TakenBack};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::desk::Desk;
use super::held::{Batch, Held};
use super::patience::Patience;
use crate::error::Error;
use crate::http::Client;
use crate::wire::lease::duration;
use crate::wire::{RegisterRequest, Registration};

/// How often to beat when the server does not say so in a way that makes sense.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// One worker's session with one server.
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) random: Arc<dyn Random>,
    worker: RegisterRequest,
    pub(super) session: watch::Sender<Session>,
    /// Held by whoever opens the next session, so that there is only one.
    opening: tokio::sync::Mutex<()>,
    /// Changed together with the session: a lease never counts as one of the wrong session.
    pub(super) held: Mutex<Held>,
    pub(super) desk: Desk,
    pub(super) gone: mpsc::UnboundedSender<Vec<TakenBack>>,
    pub(super) roll_calls: mpsc::Sender<RollCall>,
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
        let heartbeat = heartbeat.filter(|beat| !beat.is_zero()).unwrap_or(HEARTBEAT);
        Self { id: registration.session_id, heartbeat }
    }
}

impl Link {
    pub(super) fn new(
        client: Client,
        worker: RegisterRequest,
        random: Arc<dyn Random>,
        registration: Registration,
        gone: mpsc::UnboundedSender<Vec<TakenBack>>,
        roll_calls: mpsc::Sender<RollCall>,
    ) -> Self {
        Self {
            client,
            random,
            worker,
            session: watch::Sender::new(registration.into()),
            opening: tokio::sync::Mutex::default(),
            held: Mutex::default(),
            desk: Desk::default(),
            gone,
            roll_calls,
            closed: CancellationToken::new(),
        }
    }

    /// Takes leases in. Those of a session that was lost meanwhile are lost as well.
    pub(super) fn receive(&self, batch: Batch, leases: Vec<Lease>) {
        let mut held = self.held.lock();
        if self.session.borrow().id == batch.session {
            held.add(batch, &leases);
            self.desk.keep(leases);
        }
    }

    /// The server does not know this session any more: opens another one, unless somebody has
    /// done so already.
    pub(super) async fn reopen(&self, lost: SessionId) {
        let _opening = self.opening.lock().await;
        if self.session.borrow().id != lost {
            return;
        }
        tracing::warn!(session.id = %lost, "the server has taken this worker for dead");
        let mut patience = Patience::new("register");
        let registration = loop {
            match self.client.register(&self.worker).await {
                Ok(registration) => break registration,
                Err(error) => tokio::time::sleep(patience.after(&error, &*self.random)).await,
            }
        };
        let session = Session::from(registration);
        tracing::warn!(session.id = %session.id, "registered again");
        let gone = {
            let mut held = self.held.lock();
            self.session.send_replace(session);
            // Nobody has taken these, so nobody ends them.
            let kept: Vec<_> = self.desk.forget().iter().map(Lease::release).collect();
            held.remove(&kept);
            held.lost_with(lost)
        };
        self.lose(gone);
    }

    /// Tells the worker which leases are gone.
    pub(super) fn lose(&self, gone: Vec<TakenBack>) {
        if !gone.is_empty() {
            // The worker does not listen once it was dropped.
            let _ = self.gone.send(gone);
        }
    }
}

/// Whether the server says that there is no such session.
pub(super) fn session_is_gone(error: &Error) -> bool {
    error.code() == Some("SESSION_NOT_FOUND")
}

/// Whether the same call may be answered later. Only a refusal by the server itself is final: a
/// strange answer may come from a proxy while the server is away, and permission may come back.
pub(super) fn may_pass(error: &Error) -> bool {
    match error {
        Error::Problem { problem, .. } => matches!(problem.status, 401 | 403 | 408 | 429 | 500..),
        Error::Unreachable { .. } | Error::Unexpected { .. } => true,
        Error::BadAddress { .. } | Error::BadToken => false,
    }
}
