//! Worker sessions: who may claim, how it stays alive, and what its end means.

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
    /// Elsewhere: it lives until somebody sees that its beats have stopped, and outlives a
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
    /// Whose tasks it may run; everybody's when empty.
    pub tenant: Option<TenantName>,
    /// The types it has handlers for.
    pub types: Vec<TypeName>,
    /// The queues it serves; all of them when empty.
    pub queues: Vec<QueueName>,
    /// Where it runs.
    pub home: Home,
}

impl OpenSession {
    /// Whether it may run tasks of this lane.
    pub fn serves(&self, lane: &Lane) -> bool {
        self.types.contains(&lane.task_type)
            && (self.queues.is_empty() || self.queues.contains(&lane.queue))
            && self.tenant.as_ref().is_none_or(|tenant| *tenant == lane.tenant)
    }
}

/// A sign of life.
#[derive(Clone, Debug)]
pub struct Beat {
    /// Whose.
    pub session: SessionId,
    /// Sequences of claims whose leases it has received and still holds.
    pub received: Vec<u64>,
    /// Tasks that it holds and has not started. What an earlier beat said is forgotten.
    pub unstarted: Vec<TaskId>,
}

/// An open session of a process elsewhere.
#[derive(Clone, Debug)]
pub struct OpenedSession {
    /// As it was opened.
    pub opened: OpenSession,
    /// Changes with every beat and at a restart of the store, never back to what it was.
    pub beat: u64,
    /// Whether it finishes what it holds and is to be granted nothing more.
    pub draining: bool,
}

/// An open session as people look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerState {
    /// As it was opened.
    pub opened: OpenSession,
    /// The node whose process it runs in; none for a remote worker.
    pub node: Option<NodeId>,
    /// Whether it finishes what it holds and is to be granted nothing more.
    pub draining: bool,
    /// When its last sign of life came, or it was opened. One whose process has the store open lives
    /// as long as that: now.
    pub beat_at: Timestamp,
    /// How many leases it holds.
    pub leases: u32,
}

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It said so, and holds nothing that it runs: its leases go back uncharged.
    Closed,
    /// Its beats have stopped at this one. Should it have beaten since, it goes on. Each of its
    /// leases counts a loss, unless it was reported as not started.
    Died {
        /// The last one seen.
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
    /// Makes a session known; only then can it claim. Opening it again changes nothing, also after
    /// it has ended.
    async fn open_session(&self, session: OpenSession) -> Result<()>;

    /// Takes a sign of life. Answers whether the session is open.
    async fn beat(&self, beat: Beat) -> Result<bool>;

    /// Signs of life of sessions of this very process, in one call. They say nothing else, and leave
    /// what the last beat said. Answers those that somebody else has ended meanwhile. Where the store
    /// dies with its process, there is nobody else: nothing is written, and the answer is empty.
    async fn keep_alive(&self, sessions: Vec<SessionId>) -> Result<Vec<SessionId>>;

    /// The open sessions of processes elsewhere: remote ones, and those of other nodes that share the
    /// store.
    async fn sessions(&self) -> Result<Vec<OpenedSession>>;

    /// All open sessions, those of this process too.
    async fn workers(&self) -> Result<Vec<WorkerState>>;

    /// Says whether a session drains; remembered until it ends. It is granted nothing only because
    /// those who claim for it look at this: see [`OpenedSession::draining`] and [`Self::draining`].
    /// Answers whether the session is open.
    async fn drain(&self, session: SessionId, draining: bool) -> Result<bool>;

    /// Which of these sessions drain. A process asks for its own.
    async fn draining(&self, sessions: Vec<SessionId>) -> Result<Vec<SessionId>>;

    /// Which open sessions of processes elsewhere serve a lane. Looks at the newest
    /// [`crate::limits::SERVING_ROWS`] of all that were ever opened. A query: it neither waits for
    /// writes nor needs them to succeed.
    async fn serving(&self, lane: &Lane) -> Result<Vec<SessionId>>;

    /// Ends a session and puts back what it holds. Ending it twice is the same as once. Answers
    /// which tasks were put back or ended; a hint, as for [`Reaped`].
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
    /// attempt, and those that nobody acknowledged, which is a release.
    async fn reap(&self, reap: Reap) -> Result<Reaped>;
}
