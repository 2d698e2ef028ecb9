//! The work source of remote workers: the worker's side of the protocol, behind the port that
//! local workers use too.
//!
//! Two loops run beside the worker, one that claims and one that sends heartbeats; they share the
//! `Connection`. Claims, heartbeats and outcomes are repeated until they are answered, which is
//! safe: the number identifies a claim, the lease an outcome.

mod claim_queue;
mod claims;
mod connection;
mod finishes;
mod heartbeats;
mod held_leases;
mod reports;
mod retry_policy;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use duly_core::id::SessionId;
use duly_core::lease::{Finish, Finished, Lease};
use duly_core::ports::random::Random;
use duly_core::ports::store::{ReportItem, Reported};
use duly_core::ports::work_source::{Closed, ReportFailed, TakenBack, UnstartedReply, WorkSource};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::DropGuard;
use tokio_util::task::TaskTracker;

use self::connection::Connection;
use self::retry_policy::RetryPolicy;
use crate::error::Error;
use crate::http::Client;
use crate::wire::RegisterRequest;

/// How long the end of the session may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A worker's session with a server. Dropping it stops the loops without a call to the server,
/// which takes the worker for dead after the TTL.
pub struct RemoteSource {
    connection: Arc<Connection>,
    loops: TaskTracker,
    taken_back: Mutex<mpsc::UnboundedReceiver<Vec<TakenBack>>>,
    unstarted_requests: Mutex<mpsc::Receiver<UnstartedReply>>,
    _close_on_drop: DropGuard,
}

impl RemoteSource {
    /// Opens a session, without retries, and keeps it alive from then on.
    pub async fn connect(
        client: Client,
        worker: RegisterRequest,
        random: Arc<dyn Random>,
    ) -> Result<Arc<Self>, Error> {
        let registration = client.register(&worker).await?;
        let (gone, taken_back) = mpsc::unbounded_channel();
        // One at a time: a worker that has not answered the last roll call gets no other.
        let (ask, unstarted_requests) = mpsc::channel(1);
        let connection = Arc::new(Connection::new(client, worker, random, registration, gone, ask));
        let loops = TaskTracker::new();
        loops.spawn(claims::run(Arc::clone(&connection)));
        loops.spawn(heartbeats::run(Arc::clone(&connection)));
        loops.close();
        Ok(Arc::new(Self {
            loops,
            taken_back: Mutex::new(taken_back),
            unstarted_requests: Mutex::new(unstarted_requests),
            _close_on_drop: connection.closed.clone().drop_guard(),
            connection,
        }))
    }

    /// The current session. It changes after the server took this worker for dead.
    pub fn session(&self) -> SessionId {
        self.connection.session.borrow().id
    }

    /// Ends the session and releases its leases; gives up after five seconds.
    pub async fn close(&self) {
        self.connection.closed.cancel();
        self.loops.wait().await;
        if tokio::time::timeout(CLOSE_TIMEOUT, self.end_session()).await.is_err() {
            tracing::warn!("cannot end the session; its leases are taken back later");
        }
    }

    async fn end_session(&self) {
        let mut retry_policy = RetryPolicy::new("end the session");
        while let Err(error) = self.connection.client.end_session(self.session()).await {
            if !connection::is_temporary(&error) {
                return;
            }
            tokio::time::sleep(retry_policy.delay_after(&error, &*self.connection.random)).await;
        }
    }
}

#[async_trait]
impl WorkSource for RemoteSource {
    fn session(&self) -> Option<SessionId> {
        Some(self.session())
    }

    async fn claim(&self, max: usize) -> Result<Vec<Lease>, Closed> {
        tokio::select! {
            biased;
            () = self.connection.closed.cancelled() => Err(Closed),
            leases = self.connection.claim_queue.claim(max) => Ok(leases),
        }
    }

    async fn taken_back(&self) -> Vec<TakenBack> {
        match self.taken_back.lock().await.recv().await {
            Some(leases) => leases,
            None => std::future::pending().await,
        }
    }

    async fn unstarted_request(&self) -> UnstartedReply {
        match self.unstarted_requests.lock().await.recv().await {
            Some(call) => call,
            None => std::future::pending().await,
        }
    }

    async fn report(&self, batch: Vec<ReportItem>) -> Result<Vec<Reported>, ReportFailed> {
        tokio::select! {
            biased;
            () = self.connection.closed.cancelled() => Err(ReportFailed),
            answers = self.connection.report(&batch) => answers,
        }
    }

    async fn finish(&self, batch: Vec<Finish>) -> Result<Vec<Finished>, Closed> {
        tokio::select! {
            biased;
            answers = self.connection.finish(&batch) => Ok(answers),
            () = self.connection.closed.cancelled() => Err(Closed),
        }
    }
}

#[cfg(test)]
mod tests;
