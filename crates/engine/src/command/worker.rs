//! What workers elsewhere ask for: a session, leases, and to be done with them.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::SessionId;
use duly_core::lease::{Finish, Finished, Lease};
use duly_core::limits::SESSIONS;
use duly_core::name::{QueueName, TenantName, TypeName};
use duly_core::ports::store::{
    self, Beat, Claim, Ending, Exchange, ExtendLeases, Extended, Home, OpenSession, Report,
    Reported,
};
use duly_core::ports::work_source::TakenBack;
use tokio::sync::oneshot;

use crate::engine::Engine;
use crate::remotes::Attached;
use crate::source::FinishCall;

/// A worker process elsewhere.
#[derive(Clone, Debug)]
pub struct RemoteWorker {
    /// What it calls itself.
    pub name: String,
    /// Whose tasks it runs.
    pub tenant: TenantName,
    /// The types it has handlers for.
    pub types: Vec<TypeName>,
    /// The queues it serves; all of them when empty.
    pub queues: Vec<QueueName>,
}

/// A session that was opened.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// Its name.
    pub session: SessionId,
    /// How long it may be silent.
    pub ttl: Duration,
    /// How often it should beat.
    pub heartbeat: Duration,
}

/// What a worker learns when it beats.
#[derive(Clone, Debug)]
pub struct News {
    /// Leases that are gone.
    pub taken_back: Vec<TakenBack>,
    /// Whether it should finish what it runs and claim nothing more.
    pub drain: bool,
}

/// What a claim brings.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// New leases.
    pub leases: Vec<Lease>,
    /// Leases of before that are gone.
    pub taken_back: Vec<TakenBack>,
}

/// Why a worker was refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The session has ended, never was, or is another tenant's.
    #[error("there is no such session; register again")]
    UnknownSession,
    /// There are as many sessions as there may be.
    #[error("there are too many open sessions")]
    TooManySessions,
    /// The engine closes.
    #[error("the server is shutting down")]
    Closed,
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Engine {
    /// Opens a session for a worker elsewhere.
    pub async fn register(&self, worker: RemoteWorker) -> Result<Registered, Error> {
        if self.is_closing() {
            return Err(Error::Closed);
        }
        if self.remotes().attached.lock().len() >= SESSIONS {
            return Err(Error::TooManySessions);
        }
        let now = self.store().now().await?;
        let session = OpenSession {
            id: SessionId::mint(now, self.random().next()),
            name: worker.name,
            tenant: Some(worker.tenant),
            types: worker.types,
            queues: worker.queues,
            home: Home::Remote,
        };
        self.store().open_session(session.clone()).await?;
        self.remotes().attach(&session);
        // The observer may sleep: there was nobody to watch.
        self.deadlines().wake();
        let ttl = self.config().session_ttl;
        Ok(Registered { session: session.id, ttl, heartbeat: ttl / 3 })
    }

    /// Takes a sign of life. The answer waits for something to tell, at most this long.
    pub async fn heartbeat(
        &self,
        tenant: &TenantName,
        beat: Beat,
        patience: Duration,
    ) -> Result<News, Error> {
        let session = beat.session;
        let attached = self.attached(tenant, session).await?;
        if !self.store().beat(beat).await? {
            self.remotes().detach(session);
            return Err(Error::UnknownSession);
        }
        let taken_back = tokio::select! {
            biased;
            taken_back = attached.desk.taken_back() => taken_back,
            () = tokio::time::sleep(patience) => Vec::new(),
            () = self.closing() => Vec::new(),
        };
        Ok(News { taken_back, drain: attached.desk.is_draining() })
    }

    /// What a session was opened with.
    pub async fn session(&self, tenant: &TenantName, id: SessionId) -> Result<OpenSession, Error> {
        Ok(self.attached(tenant, id).await?.desk.session().clone())
    }

    /// Waits for work and returns at most as many leases as were asked for; none when the time
    /// is over, or when there is something else to tell. Asking again with the same sequence returns
    /// the same leases.
    pub async fn claim(
        &self,
        tenant: &TenantName,
        claim: Claim,
        patience: Duration,
    ) -> Result<Claimed, Error> {
        let attached = self.attached(tenant, claim.session).await?;
        let sequence = claim.sequence;
        let Some(mut leases) = attached.desk.place_as(claim) else {
            let closed = if self.is_closing() { Error::Closed } else { Error::UnknownSession };
            return Err(closed);
        };
        let mut taken_back = Vec::new();
        tokio::select! {
            biased;
            granted = &mut leases => {
                let taken_back = attached.desk.take_taken_back();
                return Ok(Claimed { leases: granted.unwrap_or_default(), taken_back });
            }
            gone = attached.desk.taken_back() => taken_back = gone,
            () = tokio::time::sleep(patience) => {}
            () = self.closing() => {}
        }
        // Somebody may be about to serve it. Nothing is lost by waiting for that: whoever has the
        // claim serves it or drops it.
        attached.desk.withdraw(sequence);
        Ok(Claimed { leases: leases.await.unwrap_or_default(), taken_back })
    }

    /// Commits outcomes; one answer per item, in order. A session that has ended is answered
    /// too: what it committed before its end stays committed.
    pub async fn finish(
        &self,
        tenant: &TenantName,
        session: SessionId,
        batch: Vec<Finish>,
    ) -> Result<Vec<Finished>, Error> {
        match self.attached(tenant, session).await {
            Ok(attached) => {
                let (reply, answers) = oneshot::channel();
                let call = FinishCall { batch, reply };
                attached.finishes.send(call).map_err(|_| Error::Closed)?;
                answers.await.map_err(|_| self.unanswered())
            }
            Err(Error::UnknownSession) => self.finish_late(tenant, session, batch).await,
            Err(error) => Err(error),
        }
    }

    /// Why outcomes got no answer.
    fn unanswered(&self) -> Error {
        if self.is_closing() {
            return Error::Closed;
        }
        let reason = "outcomes could not be committed; send them again".to_owned();
        Error::Store(store::Error::Unavailable { reason })
    }

    /// Outcomes of a session that has ended. Nothing else keeps it from naming the tasks of
    /// another tenant.
    async fn finish_late(
        &self,
        tenant: &TenantName,
        session: SessionId,
        batch: Vec<Finish>,
    ) -> Result<Vec<Finished>, Error> {
        let mut answers = Vec::with_capacity(batch.len());
        for finish in batch {
            if self.store().get(tenant, finish.task).await?.is_none() {
                answers.push(Finished::Unknown);
                continue;
            }
            let exchange = Exchange { session, finishes: vec![finish], claim: None };
            answers.extend(self.store().exchange(exchange).await?.finished);
        }
        Ok(answers)
    }

    /// Moves deadlines; one answer per item, in order.
    pub async fn extend(
        &self,
        tenant: &TenantName,
        order: ExtendLeases,
    ) -> Result<Vec<Extended>, Error> {
        self.attached(tenant, order.session).await?;
        let answers = self.store().extend(order).await?;
        let deadline = |answer: &Extended| match answer {
            Extended::Done { deadline } => Some(*deadline),
            Extended::LeaseLost | Extended::Unknown => None,
        };
        if let Some(first) = answers.iter().filter_map(deadline).min() {
            self.deadlines().look_at(first);
        }
        Ok(answers)
    }

    /// Keeps how far attempts are and what they log; one answer per item, in order.
    pub async fn report(
        &self,
        tenant: &TenantName,
        report: Report,
    ) -> Result<Vec<Reported>, Error> {
        self.attached(tenant, report.session).await?;
        Ok(self.remotes().report(report).await?)
    }

    /// Ends a session: what it still holds goes back to the queue, uncharged. A session that is
    /// not there is no error.
    pub async fn leave(&self, tenant: &TenantName, session: SessionId) -> Result<(), Error> {
        match self.attached(tenant, session).await {
            Ok(attached) => {
                self.remotes().detach(session);
                attached.stopped().await;
                self.store().end_session(session, Ending::Closed).await?;
                Ok(())
            }
            Err(Error::UnknownSession) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The session, as long as the store has it open, also if it was opened before a restart or
    /// through another node.
    async fn attached(&self, tenant: &TenantName, id: SessionId) -> Result<Arc<Attached>, Error> {
        if let Some(attached) = self.remotes().find(tenant, id) {
            return Ok(attached);
        }
        if self.is_closing() {
            return Err(Error::Closed);
        }
        let sessions = self.store().sessions().await?;
        let is_own = |it: &OpenSession| it.id == id && it.tenant.as_ref() == Some(tenant);
        let own = sessions.into_iter().find(|session| is_own(&session.opened));
        let session = own.ok_or(Error::UnknownSession)?;
        let attached = self.remotes().attach(&session.opened);
        attached.desk.set_draining(session.draining);
        self.deadlines().wake();
        Ok(attached)
    }
}
