//! Worker sessions: which workers may claim, how a session stays alive, and what its end means.

use std::sync::Arc;

use async_trait::async_trait;

use super::Result;
use crate::id::{NodeId, SessionId, TaskId};
use crate::name::{Lane, QueueName, TenantName, TypeName};
use crate::ports::work_source::TakenBack;
use crate::time::Timestamp;

/// Where the process of a session runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In the process that has the store open: the two die together.
    Local,
    /// In another process: it lives until a node sees that its heartbeats have stopped, and outlives a
    /// restart of the server.
    Remote,
}

/// A worker process that wants leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// Minted by the caller.
    pub id: SessionId,
    /// What the process calls itself.
    pub name: String,
    /// Whose tasks it may run; those of all tenants if empty.
    pub tenant: Option<TenantName>,
    /// The types it has handlers for.
    pub types: Vec<TypeName>,
    /// The queues it serves; all of them when empty.
    pub queues: Vec<QueueName>,
    /// Where it runs.
    pub home: Home,
    /// Who opened it, as [`crate::audit::Author::actor`] has it, and alone may use it; every caller of its
    /// tenant if empty.
    pub owner: Option<Arc<str>>,
}

impl OpenSession {
    /// Whether it may run tasks of this lane.
    pub fn serves(&self, lane: &Lane) -> bool {
        self.types.contains(&lane.task_type)
            && (self.queues.is_empty() || self.queues.contains(&lane.queue))
            && self.tenant.as_ref().is_none_or(|tenant| *tenant == lane.tenant)
    }
}

/// A heartbeat of a session.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    /// The session.
    pub session: SessionId,
    /// Sequences of claims whose leases it has received and still holds.
    pub received: Vec<u64>,
    /// Tasks that it holds and has not started. The list replaces that of earlier heartbeats.
    pub unstarted: Vec<TaskId>,
}

/// An open session of another process.
#[derive(Clone, Debug)]
pub struct OpenedSession {
    /// As it was opened.
    pub opened: OpenSession,
    /// Changes with every heartbeat and at a restart of the store; no value occurs twice.
    pub beat: u64,
    /// Whether it finishes what it holds and is to be granted nothing more.
    pub draining: bool,
}

/// An open session, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerState {
    /// As it was opened.
    pub opened: OpenSession,
    /// The node whose process it runs in; none for a remote worker.
    pub node: Option<NodeId>,
    /// Whether it finishes what it holds and is to be granted nothing more.
    pub draining: bool,
    /// When its last heartbeat came, or when it was opened. A session in the process that has the store
    /// open is alive: now.
    pub beat_at: Timestamp,
    /// How many leases it holds.
    pub leases: u32,
}

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The worker left: its leases are released uncharged.
    Closed,
    /// Its heartbeats have stopped at this one. If another one has come since, the session stays open. Each
    /// of its leases counts a loss, unless the worker reported it as not started.
    Died {
        /// The last heartbeat that was seen.
        beat: u64,
    },
}

/// Overdue leases to take back.
#[derive(Clone, Copy, Debug)]
pub struct Reap {
    /// Leases of remote sessions that were granted before this instant and never acknowledged
    /// are released.
    pub unacknowledged_before: Timestamp,
    /// One random number, from which the waits of timed-out tasks are drawn.
    pub entropy: u64,
}

/// What was taken back.
#[derive(Clone, Debug, Default)]
pub struct Reaped {
    /// The leases, and whose they were. A hint: a repeated call does not name them again.
    pub taken_back: Vec<(SessionId, TakenBack)>,
    /// When the next lease is overdue, as far as is known.
    pub next_deadline: Option<Timestamp>,
}

/// Worker sessions.
#[async_trait]
pub trait Sessions {
    /// Registers a session; only then can it claim. Opening it again changes nothing, also after it has
    /// ended.
    async fn open_session(&self, session: OpenSession) -> Result<()>;

    /// Records a heartbeat. Answers whether the session is open.
    async fn beat(&self, beat: Heartbeat) -> Result<bool>;

    /// Records heartbeats of sessions of this process, in one call. They change nothing else: what the
    /// last [`Heartbeat`] reported stays. Answers the sessions that other nodes have ended meanwhile. A
    /// store that only one process can open writes nothing and answers with none.
    async fn keep_alive(&self, sessions: Vec<SessionId>) -> Result<Vec<SessionId>>;

    /// The open sessions of other processes: remote workers, and those of other nodes on the same store.
    async fn sessions(&self) -> Result<Vec<OpenedSession>>;

    /// All open sessions, those of this process too.
    async fn workers(&self) -> Result<Vec<WorkerState>>;

    /// Sets whether a session drains, until it ends. The store does not refuse its claims; the node that
    /// claims for it checks this flag: see [`OpenedSession::draining`] and [`Self::draining`].
    /// Answers whether the session is open.
    async fn drain(&self, session: SessionId, draining: bool) -> Result<bool>;

    /// Which of these sessions drain. A process asks for its own.
    async fn draining(&self, sessions: Vec<SessionId>) -> Result<Vec<SessionId>>;

    /// Which open sessions of other processes serve a lane. Looks at the newest
    /// [`crate::limits::SERVING_ROWS`] sessions. A query: it does not wait for writes.
    async fn serving(&self, lane: &Lane) -> Result<Vec<SessionId>>;

    /// Ends a session and takes back its leases. Ending it twice is the same as once. Answers which tasks
    /// wait again or have ended; a hint, as for [`Reaped`].
    async fn end_session(&self, session: SessionId, ending: Ending) -> Result<Vec<TaskId>>;

    /// Collects the leases of these sessions that a cancel has taken back, perhaps through another node.
    /// Each is answered once. Where one process has the store for itself, the cancel tells the
    /// worker directly, and there is nothing to collect.
    async fn revoked(&self, sessions: Vec<SessionId>) -> Result<Vec<(SessionId, TakenBack)>> {
        let _ = sessions;
        Ok(Vec::new())
    }

    /// Waits for a hint that there is something to collect by [`Sessions::revoked`]. Hints may be lost.
    async fn revocation(&self) {
        std::future::pending().await
    }

    /// Takes back the leases of live sessions that are past their deadline, which is a failed
    /// attempt, and those that were never acknowledged, which is a release.
    async fn reap(&self, reap: Reap) -> Result<Reaped>;
}
