//! Orders for many tasks: counting those that are meant, and carrying orders out step by step.

use async_trait::async_trait;

use super::{CancelTasks, Controlled, ReplayTasks, Result, RetryTasks};
use crate::filter::Filter;
use crate::id::{SessionId, TaskId};
use crate::name::TenantName;
use crate::progress::Progress;
use crate::time::Timestamp;

/// Tasks to count.
#[derive(Clone, Debug)]
pub struct CountTasks {
    /// Whose.
    pub tenant: TenantName,
    /// Which, as in a list.
    pub filter: Filter,
    /// Whether only those count of which an attempt has failed.
    pub retried: bool,
    /// Only tasks whose id is below this one.
    pub before: Option<TaskId>,
}

/// How many tasks were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskCount {
    /// How many.
    pub count: u64,
    /// Where to go on, if it stopped before the end.
    pub next_before: Option<TaskId>,
}

/// Ended tasks to delete.
#[derive(Clone, Debug)]
pub struct DeleteTasks {
    /// Whose.
    pub tenant: TenantName,
    /// Which; at most [`crate::limits::STORE_BATCH`].
    pub tasks: Vec<TaskId>,
    /// Only those that ended before this.
    pub before: Option<Timestamp>,
}

/// An order for some tasks.
#[derive(Clone, Debug)]
pub enum Order {
    /// End them.
    Cancel(CancelTasks),
    /// Start their next attempt now.
    Retry(RetryTasks),
    /// Run them again.
    Replay(ReplayTasks),
    /// Forget them.
    Delete(DeleteTasks),
}

/// One step of a task that carries out an order for many others.
#[derive(Clone, Debug)]
pub struct BulkStep {
    /// Who runs that task.
    pub session: SessionId,
    /// That task.
    pub task: TaskId,
    /// Under which grant.
    pub epoch: u32,
    /// The order.
    pub order: Order,
    /// How far it is then, but for `done`, to which the orders that are carried out are added.
    pub progress: Progress,
}

/// Orders for many tasks.
#[async_trait]
pub trait Bulk {
    /// Counts tasks that a filter leaves, those of the system aside, looking at
    /// [`crate::limits::SCAN_ROWS`] at the most.
    async fn count(&self, which: CountTasks) -> Result<TaskCount>;

    /// Deletes ended tasks with everything about them. One that is not there is done, also when
    /// it is another tenant's; one that has not ended, or not early enough, is a conflict.
    async fn delete(&self, order: DeleteTasks) -> Result<Vec<Controlled>>;

    /// Carries out an order and notes how far it has come, both or neither. Nothing if the lease is
    /// gone: a worker that counts as dead, or was told to stop, changes nothing.
    async fn carry_out(&self, step: BulkStep) -> Result<Option<Vec<Controlled>>>;
}
