//! Queues: what waits in each, whether it is paused, and where in it a task stands.

use async_trait::async_trait;

use super::Result;
use crate::id::TaskId;
use crate::name::{QueueName, TenantName};
use crate::time::Timestamp;

/// A number of things that were counted up to a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// How many were counted.
    pub count: u32,
    /// Whether there are more.
    pub more: bool,
}

impl Counted {
    /// As many as there are, up to the bound.
    pub fn up_to(bound: u32, count: usize) -> Self {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        Self { count: count.min(bound), more: count > bound }
    }
}

/// Why nothing in a queue starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Since when.
    pub since: Timestamp,
    /// Why, for people.
    pub note: String,
}

/// One queue of a tenant. Numbers are counted up to a bound that the caller gives. What waits, is
/// due or failed is counted in the first [`crate::limits::QUEUE_LANES`] types by name; if there are
/// others, each of these numbers says that there are more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// Its name.
    pub queue: QueueName,
    /// Whether it is paused, and why.
    pub paused: Option<Pause>,
    /// Tasks that wait, for their time or for a worker.
    pub waiting: Counted,
    /// Those of them that are due.
    pub due: Counted,
    /// Tasks that run, of all types. Says that there are more if so many leases live, beside those of
    /// sessions of other tenants, that not all were looked at: [`crate::limits::COUNT_LEASES`].
    pub running: Counted,
    /// Tasks that failed and wait for a person.
    pub dead: Counted,
    /// Since when the task that has waited longest for a worker is due, among the types looked at.
    pub oldest_due: Option<Timestamp>,
}

impl QueueState {
    /// A queue with nothing in it.
    pub fn empty(queue: QueueName) -> Self {
        let none = Counted::default();
        Self {
            queue,
            paused: None,
            waiting: none,
            due: none,
            running: none,
            dead: none,
            oldest_due: None,
        }
    }
}

/// Which of a tenant's queues.
#[derive(Clone, Debug)]
pub struct ListQueues {
    /// Whose.
    pub tenant: TenantName,
    /// Only those whose name is behind this one.
    pub after: Option<QueueName>,
    /// How many. A page also ends with the queue whose types make [`crate::limits::QUEUE_LANES`] or
    /// more with those of the queues before it.
    pub limit: u32,
    /// How far to count.
    pub count_to: u32,
}

/// Some queues by name.
#[derive(Clone, Debug)]
pub struct QueueList {
    /// The queues.
    pub queues: Vec<QueueState>,
    /// Behind which one to go on, if there are more.
    pub next_after: Option<QueueName>,
}

/// A queue to pause.
#[derive(Clone, Debug)]
pub struct PauseQueue {
    /// Whose.
    pub tenant: TenantName,
    /// Which.
    pub queue: QueueName,
    /// Why, for people.
    pub note: String,
}

/// What keeps a waiting task from being granted, beside its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePosition {
    /// Whether its queue is paused, and why.
    pub paused: Option<Pause>,
    /// Due tasks of its queue that come before it in the order of claims, counted up to
    /// [`crate::limits::COUNT_ROWS`] among those of its own type and of the first
    /// [`crate::limits::QUEUE_LANES`] types; of other types there may be more.
    pub ahead: Counted,
}

/// Queues. One is there as soon as a task was submitted to it, and while it is paused.
#[async_trait]
pub trait Queues {
    /// Some of a tenant's queues, by name.
    async fn queues(&self, page: ListQueues) -> Result<QueueList>;

    /// One queue, counted up to [`crate::limits::COUNT_ROWS`].
    async fn queue(&self, tenant: &TenantName, queue: &QueueName) -> Result<Option<QueueState>>;

    /// Grants nothing from this queue any more, also if its first task is yet to come; what was
    /// granted goes on. Pausing a paused queue changes the note. Answers whether it is paused: a
    /// queue without tasks is not once [`crate::limits::PAUSED_QUEUES`] are paused.
    async fn pause_queue(&self, order: PauseQueue) -> Result<bool>;

    /// Grants from this queue again. Answers whether there is such a queue.
    async fn resume_queue(&self, tenant: &TenantName, queue: &QueueName) -> Result<bool>;

    /// Where a task stands that waits; nothing if it does not.
    async fn place(&self, tenant: &TenantName, id: TaskId) -> Result<Option<QueuePosition>>;
}
