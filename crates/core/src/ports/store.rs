//! The truth store: small traits by consumer, and [`Store`], their sum.
//!
//! Rules for every implementation:
//! - A call is atomic: after `Ok` everything it says is durable; after an error nothing is known
//!   to have happened, and repeating the call is safe (same task ids, same claim sequence).
//! - A stale or unknown item never fails its batch.
//! - Every write to a leased task is conditional, inside the statement, on task, epoch, session
//!   and the state RUNNING.
//! - Time is the store's own.

mod audit;
mod bulk;
mod dead_letters;
mod hint;
mod keys;
mod leader;
mod nodes;
mod outbox;
mod queues;
mod reports;
mod retention;
mod schedules;
mod sessions;
mod settings;
mod snapshots;
mod tenants;
mod workflows;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::filter::Filter;
use crate::id::{SessionId, TaskId};
use crate::lease::{Finish, Finished, Lease};
use crate::name::{Lane, QueueName, TenantName, TypeName};
use crate::state::Status;
use crate::submit::Start;
use crate::task::{Attempt, NewTask, Priority, Task};
use crate::time::Timestamp;

pub use self::audit::{AuditLog, ListAudit};
pub use self::bulk::{Bulk, BulkStep, CountTasks, DeleteTasks, Order, TaskCount};
pub use self::dead_letters::{
    DeadGroup, DeadGroups, DeadLetters, DeadList, DeadPosition, GroupDead, ListDead,
};
pub use self::hint::Hint;
pub use self::keys::{Keys, ListKeys, NewKey};
pub use self::leader::{Leader, Leadership};
pub use self::nodes::{JoinNode, NodeState, Nodes};
pub use self::outbox::{
    EventPage, Events, HeldSink, HoldSinks, Lag, Outbox, PassEvents, PutSink, ReadEvents, Relay,
    SinkChange, SinkState, StoredEvent, Suspension, Tidied, TidyEvents,
};
pub use self::queues::{
    Counted, ListQueues, Pause, PauseQueue, QueueList, QueuePosition, QueueState, Queues,
};
pub use self::reports::{
    LogPage, LogPart, LogPosition, ReadLogs, Report, ReportItem, Reported, Reports,
};
pub use self::retention::{Cutoffs, Expiry, Sweep, Swept};
pub use self::schedules::{
    Decide, Decided, DeleteSchedule, Expected, ListSchedules, PutSchedule, RunStatus,
    ScheduleChange, ScheduleList, Schedules, SlotOrder, SlotOutcome, SlotRecord, SwitchSchedule,
};
pub use self::sessions::{
    Ending, Heartbeat, Home, OpenSession, OpenedSession, Reap, Reaped, Sessions, WorkerState,
};
pub use self::settings::{ListSettings, Put, PutSettings, SettingsLog, VersionedSettings};
pub use self::snapshots::{CopyProgress, Snapshot, Snapshots};
pub use self::tenants::{PutTenant, TenantChange, TenantRecords, Usage};
pub use self::workflows::{
    Cascaded, Edge, Graph, ListWorkflows, Node, Parent, ReplayedDownstream, SubmittedWorkflow,
    WorkflowChange, WorkflowList, WorkflowState, Workflows,
};

/// What the caller can do about a store that did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Try again later; the reason is for people.
    #[error("the store is unavailable: {reason}")]
    Unavailable {
        /// What is wrong and what to do, for the operator.
        reason: String,
    },
    /// Another transaction holds what this call needs. Other calls may succeed meanwhile; retry this one later.
    #[error("the store is unavailable: {reason}")]
    Blocked {
        /// Who, and what to do, for the operator.
        reason: String,
    },
    /// The call exceeds a limit and never succeeds as it is.
    #[error("{what} exceeds the limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it may be.
        limit: usize,
    },
    /// Stored data cannot be read.
    #[error("stored data is damaged: {table}.{column} of {id}")]
    Corrupt {
        /// Where.
        table: &'static str,
        /// Where.
        column: &'static str,
        /// In which row.
        id: String,
    },
    /// Anything else, which is a bug or a broken installation.
    #[error("the {name} store failed")]
    Backend {
        /// Which store.
        name: &'static str,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Whether the same call may succeed later.
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Blocked { .. })
    }
}

/// What a call of the store returns.
pub type Result<T> = std::result::Result<T, Error>;

/// A batch of tasks to store; at most [`crate::limits::STORE_BATCH`].
#[derive(Clone, Debug)]
pub struct Submit {
    /// The tasks.
    pub tasks: Vec<NewTask>,
    /// Free places of a worker beside this node, if there are any.
    pub offer: Option<Claim>,
}

/// What became of one submitted task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// Stored, now or by an earlier call with the same id.
    Stored {
        /// When, by the store's clock: what the task's delay counts from.
        at: Timestamp,
    },
    /// Stored and granted in the same commit, under the offer's session, with this epoch.
    HandedOff {
        /// The fencing token.
        epoch: u32,
        /// When the task was stored and granted.
        granted_at: Timestamp,
    },
    /// The idempotency key was used before with the same body, for this task.
    Replayed {
        /// The task of the first submit.
        id: TaskId,
    },
    /// The idempotency key was used before with another body.
    KeyReused,
    /// The task would open one lane too many; see [`crate::limits::LANES`].
    LaneLimit,
    /// Stored, now or by an earlier call with the same id, and waits for its parents.
    Blocked {
        /// When.
        at: Timestamp,
    },
    /// It depends on a task that is not there, or is another tenant's.
    UnknownParent {
        /// The parent.
        parent: TaskId,
    },
    /// A parent would have too many children; see [`crate::limits::CHILDREN`].
    TooManyChildren {
        /// The parent.
        parent: TaskId,
    },
    /// The workflow that it is to join has ended or was cancelled.
    WorkflowEnded,
    /// The workflow that it is to join is not there, or is another tenant's.
    UnknownWorkflow,
}

/// What a store goes by, beside the limits that are the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Lost leases after which a task is failed: it probably kills its worker.
    pub loss_limit: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self { loss_limit: crate::limits::LOSSES }
    }
}

/// Submitting and reading tasks.
#[async_trait]
pub trait Tasks {
    /// Stores tasks, one answer per task in order. A task that is due, served by the offer's
    /// session and alone in its lane (nothing else due there) is granted at once, as long as the
    /// offer lasts; the others wait in the due index.
    async fn submit(&self, batch: Submit) -> Result<Vec<Submitted>>;

    /// One task. Another tenant's task is absent.
    async fn get(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Task>>;

    /// One page of a tenant's tasks, newest first due time first; about
    /// [`crate::limits::PAGE_BYTES`] at the most, but at least one task. It looks at
    /// [`crate::limits::SCAN_ROWS`] tasks at the most and then says where to go on, perhaps with
    /// nothing found: following `next_before` to its end shows every match once.
    async fn list(&self, page: ListTasks) -> Result<TaskList>;

    /// The attempts of a task that have ended, oldest first, the last
    /// [`crate::limits::ATTEMPTS`] of them; nothing if the task is absent.
    async fn attempts(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Vec<Attempt>>>;
}

/// A page of tasks.
#[derive(Clone, Debug)]
pub struct TaskList {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Where the next page starts, if there is one: the last task looked at.
    pub next_before: Option<TaskId>,
    /// How many of the tenant's tasks were looked at.
    pub scanned: u32,
    /// Whether it ended after [`crate::limits::SCAN_ROWS`] although it was not full.
    pub partial: bool,
}

/// Which page of a tenant's tasks.
#[derive(Clone, Debug)]
pub struct ListTasks {
    /// Whose.
    pub tenant: TenantName,
    /// Which; its times are those of the first due time, which the id carries.
    pub filter: Filter,
    /// Only tasks whose id is below this one.
    pub before: Option<TaskId>,
    /// How many.
    pub limit: u32,
}

/// A request for leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Who asks.
    pub session: SessionId,
    /// Counts the session's claims from 1. Asking again with the same number returns what the
    /// first call granted, except for what has ended since.
    pub sequence: u64,
    /// How many at most.
    pub max: usize,
    /// Which of the session's lanes this claim is for; all of them when absent. A repeated claim
    /// returns what the first call granted, whatever it asks for now.
    pub only: Option<Arc<LaneFilter>>,
}

impl Claim {
    /// A claim for all lanes of the session.
    pub fn new(session: SessionId, sequence: u64, max: usize) -> Self {
        Self { session, sequence, max, only: None }
    }

    /// Whether it may be granted tasks of this lane, provided that its session serves the lane.
    pub fn accepts(&self, lane: &Lane) -> bool {
        self.only.as_ref().is_none_or(|only| only.accepts(lane))
    }
}

/// Narrows a claim to some queues and types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneFilter {
    /// The queues; all of them when empty.
    pub queues: HashSet<QueueName>,
    /// The types; all of them when empty.
    pub types: HashSet<TypeName>,
}

impl LaneFilter {
    /// Whether tasks of this lane pass.
    pub fn accepts(&self, lane: &Lane) -> bool {
        (self.types.is_empty() || self.types.contains(&lane.task_type))
            && (self.queues.is_empty() || self.queues.contains(&lane.queue))
    }
}

/// Outcomes to commit and leases to get, in one call. A store may commit the two beside each other:
/// a repeated call is safe.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Whose leases and whose claim.
    pub session: SessionId,
    /// Outcomes; what they put back is there when the claim looks for work.
    pub finishes: Vec<Finish>,
    /// The claim, with the session of this exchange.
    pub claim: Option<Claim>,
}

/// The answer to an [`Exchange`].
#[derive(Clone, Debug)]
pub struct Exchanged {
    /// One answer per finish, in order.
    pub finished: Vec<Finished>,
    /// The leases granted, in the order in which they should start.
    pub leases: Vec<Lease>,
    /// The parents of those of the leases that have some, one list each, in order. `None` if the store
    /// has not read them along: [`Workflows::parents`] has them.
    pub parents: Option<Vec<Vec<Parent>>>,
    /// When the lanes of the claim, or of the session if there is no claim, have something due next
    /// (perhaps already), as far as is known.
    pub next_due: Option<Timestamp>,
}

/// Granting and finishing leases.
#[async_trait]
pub trait Leases {
    /// Commits the outcomes and grants due tasks of the session's lanes, ordered by run time
    /// minus priority × ageing, then by id; not more payload than
    /// [`crate::limits::STORE_BATCH_BYTES`], but at least one task. A session that is not open
    /// gets nothing. Repeated, the call answers as the first time.
    ///
    /// A quarantined task (see [`crate::limits::QUARANTINE_LOSSES`]) is granted alone: only to a session that
    /// holds nothing, and nothing beside it. A session that comes upon one while it holds leases
    /// gets nothing more until it holds none; other sessions pass it by meanwhile.
    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged>;

    /// Moves the deadlines of leases; one answer per item, in order.
    async fn extend(&self, order: ExtendLeases) -> Result<Vec<Extended>>;
}

/// Leases that need more time.
#[derive(Clone, Debug)]
pub struct ExtendLeases {
    /// Whose.
    pub session: SessionId,
    /// Which; at most [`crate::limits::STORE_BATCH`].
    pub leases: Vec<Extend>,
}

/// One lease that needs more time.
#[derive(Clone, Copy, Debug)]
pub struct Extend {
    /// Which task.
    pub task: TaskId,
    /// Under which grant.
    pub epoch: u32,
    /// How long it may run from now on.
    pub by: Duration,
}

/// What became of one [`Extend`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extended {
    /// The lease has this deadline now.
    Done {
        /// When it is overdue.
        deadline: Timestamp,
    },
    /// The lease was taken back before; nothing changed.
    LeaseLost,
    /// There is no such task.
    Unknown,
}

/// Tasks of one tenant to end.
#[derive(Clone, Debug)]
pub struct CancelTasks {
    /// Whose.
    pub tenant: TenantName,
    /// Which; at most [`crate::limits::STORE_BATCH`].
    pub tasks: Vec<TaskId>,
    /// Why, for people.
    pub reason: String,
}

/// Tasks of one tenant to run again.
#[derive(Clone, Debug)]
pub struct ReplayTasks {
    /// Whose.
    pub tenant: TenantName,
    /// Which; at most [`crate::limits::STORE_BATCH`].
    pub tasks: Vec<Replay>,
    /// What they get instead of their payload, if it is to change: JSON text, checked.
    pub payload: Option<Arc<str>>,
}

/// One task to run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Which task.
    pub task: TaskId,
    /// The run that has ended. If the task is further on, the order was carried out before.
    pub run: u32,
    /// When the next run is due; at once if it does not say.
    pub run_at: Option<Timestamp>,
}

/// Tasks of one tenant whose next attempt is to start now.
#[derive(Clone, Debug)]
pub struct RetryTasks {
    /// Whose.
    pub tenant: TenantName,
    /// Which; at most [`crate::limits::STORE_BATCH`].
    pub tasks: Vec<TaskId>,
}

/// A waiting task of one tenant to change.
#[derive(Clone, Debug)]
pub struct EditTask {
    /// Whose.
    pub tenant: TenantName,
    /// Which.
    pub task: TaskId,
    /// What it gets instead of what it has.
    pub change: TaskChange,
}

/// What is to change about a task; the rest stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskChange {
    /// JSON text, checked.
    pub payload: Option<Arc<str>>,
    /// Its level.
    pub priority: Option<Priority>,
    /// When it may start. The store resolves it by its own clock.
    pub start: Option<Start>,
    /// How many failed attempts may be followed by another.
    pub retries: Option<u32>,
    /// How long its handler may run.
    pub timeout: Option<Duration>,
    /// Searchable marks, all of them.
    pub labels: Option<BTreeMap<String, String>>,
}

/// What became of an order for one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controlled {
    /// Carried out, or it was so already.
    Done,
    /// The task is in a state in which it makes no sense; nothing changed.
    Conflict {
        /// The state.
        status: Status,
    },
    /// Tasks that depend on it have not ended: it cannot be deleted. Nothing changed.
    OpenChildren,
    /// There is no such task, or it is another tenant's.
    Unknown,
}

/// What people can do to tasks. One answer per task, in order.
#[async_trait]
pub trait Control {
    /// Ends tasks that wait or run. The lease of one that runs is taken back: the epoch is
    /// raised, and its holder's outcome is refused. Cancelling a cancelled task is done.
    async fn cancel(&self, order: CancelTasks) -> Result<Vec<Controlled>>;

    /// Opens the next run of tasks that have ended: fresh retries, no losses. The
    /// epoch goes on, and an outcome of the run before is refused.
    async fn replay(&self, order: ReplayTasks) -> Result<Vec<Controlled>>;

    /// Makes tasks that wait for a retry due now.
    async fn retry(&self, order: RetryTasks) -> Result<Vec<Controlled>>;

    /// Changes a task that waits or is blocked. Its id stays, also when its time moves.
    async fn edit(&self, order: EditTask) -> Result<Controlled>;
}

/// The store's own state.
#[async_trait]
pub trait StoreHealth {
    /// The store's clock, by which due times are judged.
    async fn now(&self) -> Result<Timestamp>;

    /// Whether the store takes writes now. While it does not, this tries a real one, so that the
    /// answer heals as soon as the cause is gone.
    async fn check(&self) -> Result<()>;

    /// Waits for a hint that a waiting task was stored or put back, and returns all since the last
    /// call as one. Hints may be lost: polling alone is correct.
    async fn hint(&self) -> Hint;

    /// How many submits it is worth having under way at once; a store with one writer has more of
    /// each batch.
    fn submits_at_once(&self) -> usize {
        1
    }
}

/// A truth store.
pub trait Store:
    Tasks
    + Sessions
    + Leases
    + Reports
    + Control
    + Bulk
    + DeadLetters
    + Queues
    + SettingsLog
    + Expiry
    + Leadership
    + Nodes
    + Snapshots
    + Workflows
    + Schedules
    + AuditLog
    + Keys
    + TenantRecords
    + Outbox
    + StoreHealth
    + Send
    + Sync
{
}

impl<T> Store for T where
    T: Tasks
        + Sessions
        + Leases
        + Reports
        + Control
        + Bulk
        + DeadLetters
        + Queues
        + SettingsLog
        + Expiry
        + Leadership
        + Nodes
        + Snapshots
        + Workflows
        + Schedules
        + AuditLog
        + Keys
        + TenantRecords
        + Outbox
        + StoreHealth
        + Send
        + Sync
{
}
