//! The calls of remote workers: register, claim, heartbeat, report, extend, finish and leave.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::SessionId;
use duly_core::lease::{Finish, Finished, Lease};
use duly_core::limits::SESSIONS;
use duly_core::name::{QueueName, TenantName, TypeName};
use duly_core::ports::store::{
    self, Claim, Ending, Exchange, ExtendLeases, Extended, Heartbeat, Home, OpenSession, Report,
    Reported,
};
use duly_core::ports::work_source::TakenBack;
use duly_core::state::Status;
use tokio::sync::oneshot;

use crate::attached_sessions::AttachedSession;
use crate::engine::Engine;
use crate::source::FinishCall;

/// A worker in a process of its own.
#[derive(Clone, Debug)]
pub struct RemoteWorker {
    /// Its name.
    pub name: String,
    /// The tenant whose tasks it runs.
    pub tenant: TenantName,
    /// The types it has handlers for.
    pub types: Vec<TypeName>,
    /// The queues it serves; all of them when empty.
    pub queues: Vec<QueueName>,
}

/// A session that was opened.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// Its id.
    pub session: SessionId,
    /// How long it stays open without a heartbeat.
    pub ttl: Duration,
    /// How often it should send a heartbeat.
    pub heartbeat: Duration,
}

/// The answer to a heartbeat.
#[derive(Clone, Debug)]
pub struct HeartbeatAnswer {
    /// Leases that are gone.
    pub taken_back: Vec<TakenBack>,
    /// Whether the worker should finish what it runs and claim nothing more.
    pub drain: bool,
}

/// The answer to a claim.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// New leases.
    pub leases: Vec<Lease>,
    /// Earlier leases that are gone.
    pub taken_back: Vec<TakenBack>,
}

/// Why a worker's call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The session has ended, never existed, or is another caller's.
    #[error("there is no such session; register again")]
    UnknownSession,
    /// The limit of open sessions is reached.
    #[error("there are too many open sessions")]
    TooManySessions,
    /// The engine closes.
    #[error("the server is shutting down")]
    Closed,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Engine {
    /// Opens a session for a remote worker.
    pub async fn register(&self, worker: RemoteWorker) -> Result<Registered, Error> {
        if self.is_closing() {
            return Err(Error::Closed);
        }
        if self.sessions().remote.lock().len() >= SESSIONS {
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
            owner: self.owner().cloned(),
        };
        self.store().open_session(session.clone()).await?;
        self.sessions().attach_remote(&session);
        // The observer may sleep until it has a session to watch.
        self.deadlines().wake();
        let ttl = self.config().session_ttl;
        Ok(Registered { session: session.id, ttl, heartbeat: ttl / 3 })
    }

    /// Keeps a session alive. Answers when leases are taken back, or after `wait`.
    pub async fn heartbeat(
        &self,
        tenant: &TenantName,
        beat: Heartbeat,
        wait: Duration,
    ) -> Result<HeartbeatAnswer, Error> {
        let session = beat.session;
        let attached = self.attached(tenant, session).await?;
        if !self.store().beat(beat).await? {
            self.sessions().detach_remote(session);
            return Err(Error::UnknownSession);
        }
        let taken_back = self.taken_back_within(wait, &attached).await;
        Ok(HeartbeatAnswer { taken_back, drain: attached.claim_slot.is_draining() })
    }

    /// What a session was opened with.
    pub async fn session(&self, tenant: &TenantName, id: SessionId) -> Result<OpenSession, Error> {
        Ok(self.attached(tenant, id).await?.claim_slot.session().clone())
    }

    /// Waits for tasks and returns at most as many leases as the claim asks for; none after
    /// `wait`, or when leases are taken back meanwhile. A repeated claim with the same sequence
    /// returns the same leases.
    pub async fn claim(
        &self,
        tenant: &TenantName,
        claim: Claim,
        wait: Duration,
    ) -> Result<Claimed, Error> {
        let attached = self.attached(tenant, claim.session).await?;
        let sequence = claim.sequence;
        let Some(mut leases) = attached.claim_slot.place_numbered(claim) else {
            let closed = if self.is_closing() { Error::Closed } else { Error::UnknownSession };
            return Err(closed);
        };
        let taken_back = tokio::select! {
            biased;
            granted = &mut leases => {
                let taken_back = attached.claim_slot.take_taken_back();
                return Ok(Claimed { leases: granted.unwrap_or_default(), taken_back });
            }
            taken_back = self.taken_back_within(wait, &attached) => taken_back,
        };
        // A loop may hold the claim. It soon serves the claim or drops it.
        attached.claim_slot.withdraw(sequence);
        Ok(Claimed { leases: leases.await.unwrap_or_default(), taken_back })
    }

    /// Waits for leases that are gone; none when the time is over or the engine closes.
    async fn taken_back_within(
        &self,
        wait: Duration,
        attached: &AttachedSession,
    ) -> Vec<TakenBack> {
        tokio::select! {
            biased;
            taken_back = attached.claim_slot.taken_back() => taken_back,
            () = tokio::time::sleep(wait) => Vec::new(),
            () = self.closing() => Vec::new(),
        }
    }

    /// Commits outcomes; one answer per item, in order. Also answers for a session that has
    /// ended: an outcome that it committed before its end stays committed, and no other is.
    pub async fn finish(
        &self,
        tenant: &TenantName,
        session: SessionId,
        mut batch: Vec<Finish>,
    ) -> Result<Vec<Finished>, Error> {
        self.sessions().adder.fill(&mut batch).await?;
        match self.attached(tenant, session).await {
            Ok(attached) => {
                let (reply, answers) = oneshot::channel();
                let call = FinishCall { batch, reply };
                attached.finishes.send(call).map_err(|_| Error::Closed)?;
                answers.await.map_err(|_| self.unanswered())
            }
            Err(Error::UnknownSession) if self.is_open(session).await? => {
                // It is another caller's.
                Ok(vec![Finished::Unknown; batch.len()])
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
        let reason = "cannot commit the outcomes now; send them again".to_owned();
        Error::Store(store::Error::Unavailable { reason })
    }

    /// Commits outcomes of a session that has ended. Checks that each task is the tenant's, since
    /// there is no attached session to tell whose it is.
    async fn finish_late(
        &self,
        tenant: &TenantName,
        session: SessionId,
        batch: Vec<Finish>,
    ) -> Result<Vec<Finished>, Error> {
        let mut answers = Vec::with_capacity(batch.len());
        for finish in batch {
            let Some(task) = self.store().get(tenant, finish.task).await? else {
                answers.push(Finished::Unknown);
                continue;
            };
            // The lease goes back next. Until then nothing tells whether this is who held it.
            if task.status == Status::Running && task.epoch == finish.epoch {
                answers.push(Finished::LeaseLost);
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
            self.deadlines().add(first);
        }
        Ok(answers)
    }

    /// Stores progress and log lines of attempts; one answer per item, in order.
    pub async fn report(
        &self,
        tenant: &TenantName,
        report: Report,
    ) -> Result<Vec<Reported>, Error> {
        self.attached(tenant, report.session).await?;
        Ok(self.sessions().report(report).await?)
    }

    /// Ends a session and releases its leases, uncharged. An unknown session is not an error.
    pub async fn leave(&self, tenant: &TenantName, session: SessionId) -> Result<(), Error> {
        match self.attached(tenant, session).await {
            Ok(attached) => {
                attached.claim_slot.close();
                attached.stop_dispatcher().await;
                let ended = self.store().end_session(session, Ending::Closed).await;
                // Not before: a heartbeat that arrives meanwhile would attach it again.
                self.sessions().detach_remote(session);
                Ok(ended.map(drop)?)
            }
            Err(Error::UnknownSession) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// An open session. Attaches it first if it was opened before a restart or through another
    /// node.
    async fn attached(
        &self,
        tenant: &TenantName,
        id: SessionId,
    ) -> Result<Arc<AttachedSession>, Error> {
        if let Some(attached) = self.sessions().find_remote(id) {
            let is_own = self.owns(tenant, attached.claim_slot.session());
            return if is_own { Ok(attached) } else { Err(Error::UnknownSession) };
        }
        if self.is_closing() {
            return Err(Error::Closed);
        }
        let sessions = self.store().sessions().await?;
        let is_own = |it: &OpenSession| it.id == id && self.owns(tenant, it);
        let own = sessions.into_iter().find(|session| is_own(&session.opened));
        let session = own.ok_or(Error::UnknownSession)?;
        let attached = self.sessions().attach_remote(&session.opened);
        attached.claim_slot.set_draining(session.draining);
        self.deadlines().wake();
        Ok(attached)
    }

    /// Whether a session is this caller's: opened for its tenant, and with the same key.
    fn owns(&self, tenant: &TenantName, session: &OpenSession) -> bool {
        session.tenant.as_ref() == Some(tenant) && session.owner.as_ref() == self.owner()
    }

    /// Whether a session is open, whosever it is.
    async fn is_open(&self, id: SessionId) -> Result<bool, Error> {
        let sessions = self.store().sessions().await?;
        Ok(self.sessions().find_remote(id).is_some()
            || sessions.iter().any(|it| it.opened.id == id))
    }
}
