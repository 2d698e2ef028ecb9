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

/// A report was not taken. Nothing needs to be done about it: what was logged goes with the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the report was not taken")]
pub struct Unheard;

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
    /// Somebody cancelled the task.
    Cancelled,
    /// It was overdue, or its session was taken for dead: somebody else gets the task.
    Lost,
}

/// Takes the tasks that a worker holds and has not started.
pub type RollCall = Box<dyn FnOnce(Vec<TaskId>) + Send>;

/// A worker's view of the system, in process or over the network.
#[async_trait]
pub trait WorkSource: Send + Sync {
    /// Who holds the leases of now, where the source can tell. One that was granted to an earlier
    /// session of this worker is lost.
    fn session(&self) -> Option<SessionId> {
        None
    }

    /// Waits for work and returns between one and `max` leases. While the call waits, the worker
    /// is known to have `max` free places, and a task may be handed to it as it is submitted.
    ///
    /// Dropping the call is safe: leases it would have returned are given back.
    async fn claim(&self, max: usize) -> Result<Vec<Lease>, Closed>;

    /// The claim that waits, if one does, may bring so many by now. A hint.
    fn widen(&self, max: usize) {
        let _ = max;
    }

    /// Whether another worker may be ready to run tasks of this lane now. A worker that cannot start
    /// such a lease soon then hands it back.
    fn is_wanted(&self, lane: &Lane) -> bool {
        let _ = lane;
        true
    }

    /// Waits until leases are taken back from outside, and tells which. A hint: what is missed shows when the outcome is refused.
    async fn taken_back(&self) -> Vec<TakenBack>;

    /// Waits until the source wants to know which leases have not started, and returns whom to
    /// tell. Should this worker die, the others count a loss.
    async fn roll_call(&self) -> RollCall {
        std::future::pending().await
    }

    /// Tells how far attempts are and what they log; returns one answer per item, in order. Tried
    /// once: nobody waits for a report.
    async fn report(&self, batch: Vec<ReportItem>) -> Result<Vec<Reported>, Unheard>;

    /// Commits outcomes; returns one answer per item, in order, once they are durable. Waits
    /// while the store is away: an outcome is given up only when the source closes.
    async fn finish(&self, batch: Vec<Finish>) -> Result<Vec<Finished>, Closed>;
}
