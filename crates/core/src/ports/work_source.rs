//! Where a worker gets its leases from.

use async_trait::async_trait;

use crate::id::{SessionId, TaskId};
use crate::lease::{Finish, Finished, Lease};
use crate::name::Lane;
use crate::ports::store::{ReportItem, Reported};

/// The source has shut down: there will be no more work, and nothing more can be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the source of work is closed")]
pub struct Closed;

/// A report was not stored. The caller need not retry: the log goes with the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the report was not stored")]
pub struct ReportFailed;

/// A lease that is gone, and every older one of the same task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenBack {
    /// Which task.
    pub task: TaskId,
    /// The epoch of the lease.
    pub epoch: u32,
    /// Why.
    pub why: Why,
}

/// Why a lease is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The task was cancelled.
    Cancelled,
    /// It was overdue, or its session counted as dead: another worker gets the task.
    Lost,
}

/// Receives the tasks that a worker holds and has not started.
pub type UnstartedReply = Box<dyn FnOnce(Vec<TaskId>) + Send>;

/// A worker's view of the system, in process or over the network.
#[async_trait]
pub trait WorkSource: Send + Sync {
    /// The session that holds new leases, if the source knows it. Leases of an earlier session of this
    /// worker are lost.
    fn session(&self) -> Option<SessionId> {
        None
    }

    /// Waits for work and returns between one and `max` leases. While the call waits, the worker
    /// is known to have `max` free slots, and a task may be handed to it as it is submitted.
    ///
    /// Dropping the call is safe: leases it would have returned are given back.
    async fn claim(&self, max: usize) -> Result<Vec<Lease>, Closed>;

    /// Raises the limit of the waiting claim, if there is one. A hint.
    fn widen(&self, max: usize) {
        let _ = max;
    }

    /// Whether another worker may be ready to run tasks of this lane now. A worker that cannot start
    /// such a lease soon then hands it back.
    fn is_wanted(&self, lane: &Lane) -> bool {
        let _ = lane;
        true
    }

    /// Waits until leases of this worker are taken back, and names them. A hint: a missed one shows when
    /// the outcome is refused.
    async fn taken_back(&self) -> Vec<TakenBack>;

    /// Waits until the source asks which leases have not started, and returns where to send the answer.
    /// If this worker dies, all other leases count a loss.
    async fn unstarted_request(&self) -> UnstartedReply {
        std::future::pending().await
    }

    /// Reports progress and logs of attempts; returns one answer per item, in order. Tried once: no
    /// caller waits for a report.
    async fn report(&self, batch: Vec<ReportItem>) -> Result<Vec<Reported>, ReportFailed>;

    /// Commits outcomes; returns one answer per item, in order, once they are durable. Waits
    /// while the store is away: an outcome is given up only when the source closes.
    async fn finish(&self, batch: Vec<Finish>) -> Result<Vec<Finished>, Closed>;
}
