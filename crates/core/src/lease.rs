//! Leases: the right to commit one outcome, and what can be done with it.

use std::sync::Arc;
use std::time::Duration;

use crate::id::{SessionId, TaskId};
use crate::limits::{DEADLINE_SLACK, DEFAULT_TIMEOUT};
use crate::log::LogChunk;
use crate::name::Lane;
use crate::progress::Progress;
use crate::task::{Failure, NewTask};
use crate::time::Timestamp;
use crate::workflow::request::Added;

/// Everything a worker needs to run one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Which task.
    pub task: TaskId,
    /// The fencing token of this grant.
    pub epoch: u32,
    /// Which run of the task.
    pub run: u32,
    /// Which attempt of the run; the first is 1.
    pub attempt: u32,
    /// How many failed attempts may be followed by another.
    pub retries: u32,
    /// Tenant, queue and type.
    pub lane: Lane,
    /// How long the handler may run, if the task says.
    pub timeout: Option<Duration>,
    /// When the grant was committed.
    pub granted_at: Timestamp,
    /// When the task was due.
    pub run_at: Timestamp,
    /// JSON text.
    pub payload: Arc<str>,
    /// Whether the task has parents. May be spurious: they may have been deleted.
    pub has_parents: bool,
    /// Whether other tasks depended on it as it was granted. May be spurious: they may have been deleted.
    pub has_children: bool,
    /// Whether the payload is a template, which is rendered before a worker gets the lease.
    pub renders: bool,
    /// The task's parents by key or id with their results, as JSON text. Filled in before a worker gets
    /// the lease.
    pub parents: Option<Arc<str>>,
}

impl Lease {
    /// How long the handler may run.
    pub fn time_limit(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }

    /// When the lease is overdue, unless it is extended.
    pub fn deadline(&self) -> Timestamp {
        self.granted_at.plus(self.time_limit() + DEADLINE_SLACK)
    }

    /// Hands the lease back untried.
    pub fn release(&self) -> Finish {
        Finish::new(self.task, self.epoch, Outcome::Release)
    }

    /// The same for every execution of one run, so that a handler's effects can be made once.
    pub fn idempotency_key(&self) -> String {
        format!("{}-{}", self.task, self.run)
    }
}

/// What a write on behalf of a lease is conditional on: no other lease has all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    /// Which task.
    pub task: TaskId,
    /// Under which grant.
    pub epoch: u32,
    /// Who holds it.
    pub session: SessionId,
}

/// What a worker says of one lease.
#[derive(Clone, Debug, PartialEq)]
pub struct Finish {
    /// Which task.
    pub task: TaskId,
    /// Under which grant.
    pub epoch: u32,
    /// How it went.
    pub outcome: Outcome,
    /// How long its handler ran, where the worker says so: when it started is computed from it.
    pub ran: Option<Duration>,
    /// How far it came, if that was not reported yet.
    pub progress: Option<Progress>,
    /// What it has logged and not reported yet; kept however it went.
    pub log: Option<LogChunk>,
    /// Tasks that are stored with a success; at most [`crate::limits::THEN_TASKS`]. A repeated outcome
    /// stores them once, and one that is refused stores none.
    pub then: Option<Arc<[NewTask]>>,
    /// Tasks that are to be stored with a success and have no ids yet. The engine turns them into
    /// `then`; a store leaves them alone.
    pub added: Option<Arc<Added>>,
}

impl Finish {
    /// When its handler started, if the end is committed now and the lease was granted then.
    pub fn started_at(&self, now: Timestamp, granted_at: Timestamp) -> Option<Timestamp> {
        self.ran.map(|ran| now.minus(ran).max(granted_at))
    }

    /// An outcome and nothing else.
    pub fn new(task: TaskId, epoch: u32, outcome: Outcome) -> Self {
        Self { task, epoch, outcome, ran: None, progress: None, log: None, then: None, added: None }
    }
}

/// How an attempt went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded, perhaps with a result (JSON text).
    Success {
        /// What the handler returned.
        result: Option<Arc<str>>,
    },
    /// It failed; another attempt may follow.
    Retry {
        /// Why.
        error: Failure,
        /// One random number, from which the store draws the wait.
        entropy: u64,
        /// The wait, where the handler knows it better than the policy.
        after: Option<Duration>,
    },
    /// It failed for good.
    Fail {
        /// Why.
        error: Failure,
    },
    /// It was not tried; nothing is charged.
    Release,
}

/// What became of one [`Finish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finished {
    /// Committed, now or by an earlier call.
    Done,
    /// The lease was taken back before; nothing changed.
    LeaseLost,
    /// There is no such task.
    Unknown,
}
