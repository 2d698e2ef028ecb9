//! Work from a server elsewhere: the worker's side of the protocol, behind the port that an
//! in-process worker uses too.
//!
//! Two loops run beside the worker, one that claims and one that beats. What they share is the
//! `Link`. Everything is repeated until it is answered, since every call may be repeated: a
//! claim by its number, an outcome by its lease.

mod claims;
mod desk;
mod finishes;
mod heart;
mod held;
mod link;
mod patience;
mod reports;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use duly_core::id::SessionId;
use duly_core::lease::{Finish, Finished, Lease};
use duly_core::ports::random::Random;
use duly_core::ports::store::{ReportItem, Reported};
use duly_core::ports::work_source::{Closed, RollCall, TakenBack, Unheard, WorkSource};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::DropGuard;
use tokio_util::task::TaskTracker;

use self::link::Link;
use self::patience::Patience;
use crate::error::Error;
use crate::http::Client;
use crate::wire::RegisterRequest;

/// How long the end of the session may take.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A worker's session with a server. Dropping it stops the loops, but tells the server nothing:
/// it takes the worker for dead a little later.
pub struct RemoteSource {
    link: Arc<Link>,
    loops: TaskTracker,
    taken_back: Mutex<mpsc::UnboundedReceiver<Vec<TakenBack>>>,
    roll_calls: Mutex<mpsc::Receiver<RollCall>>,
    _close_on_drop: DropGuard,
}

impl RemoteSource {
    /// Opens a session, at the first try or not at all, and keeps it alive from then on.
    pub async fn connect(
        client: Client,
        worker: RegisterRequest,
        random: Arc<dyn Random>,
    ) -> Result<Arc<Self>, Error> {
        let registration = client.register(&worker).await?;
        let (gone, taken_back) = mpsc::unbounded_channel();
        // One at a time: a worker that has not answered the last call need not hear the next.
        let (ask, roll_calls) = mpsc::channel(1);
        let link = Arc::new(Link::new(client, worker, random, registration, gone, ask));
        let loops = TaskTracker::new();
        loops.spawn(claims::run(Arc::clone(&link)));
        loops.spawn(heart::run(Arc::clone(&link)));
        loops.close();
        Ok(Arc::new(Self {
            loops,
            taken_back: Mutex::new(taken_back),
            roll_calls: Mutex::new(roll_calls),
            _close_on_drop: link.closed.clone().drop_guard(),
            link,
        }))
    }

    /// The session, which is another one after the server has taken this worker for dead.
    pub fn session(&self) -> SessionId {
        self.link.session.borrow().id
    }

    /// Ends the session and hands back what it still holds; gives up after five seconds.
    pub async fn close(&self) {
        self.link.closed.cancel();
        self.loops.wait().await;
        if tokio::time::timeout(LAST_WORDS, self.end_session()).await.is_err() {
            tracing::warn!("the session could not be ended; its leases come back later");
        }
    }

    async fn end_session(&self) {
        let mut patience = Patience::new("end the session");
        while let Err(error) = self.link.client.end_session(self.session()).await {
            if !link::may_pass(&error) {
                return;
            }
            tokio::time::sleep(patience.after(&error, &*self.link.random)).await;
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
            () = self.link.closed.cancelled() => Err(Closed),
            leases = self.link.desk.claim(max) => Ok(leases),
        }
    }

    async fn taken_back(&self) -> Vec<TakenBack> {
        match self.taken_back.lock().await.recv().await {
            Some(leases) => leases,
            None => std::future::pending().await,
        }
    }

    async fn roll_call(&self) -> RollCall {
        match self.roll_calls.lock().await.recv().await {
            Some(call) => call,
            None => std::future::pending().await,
        }
    }

    async fn report(&self, batch: Vec<ReportItem>) -> Result<Vec<Reported>, Unheard> {
        tokio::select! {
            biased;
            () = self.link.closed.cancelled() => Err(Unheard),
            answers = self.link.report(&batch) => answers,
        }
    }

    async fn finish(&self, batch: Vec<Finish>) -> Result<Vec<Finished>, Closed> {
        tokio::select! {
            biased;
            answers = self.link.finish(&batch) => Ok(answers),
            () = self.link.closed.cancelled() => Err(Closed),
        }
    }
}

#[cfg(test)]
mod tests;
