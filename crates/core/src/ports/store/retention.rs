//! Deleting tasks that ended long ago.

use async_trait::async_trait;

use super::Result;
use crate::id::TaskId;
use crate::state::Status;
use crate::time::Timestamp;

/// Which ended tasks of all tenants to delete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// SUCCESS that ended before this time; none if absent.
    pub success_before: Option<Timestamp>,
    /// FAILED that ended before this time; none if absent.
    pub failed_before: Option<Timestamp>,
    /// CANCELLED that ended before this time; none if absent.
    pub cancelled_before: Option<Timestamp>,
    /// Only tasks whose id is above this one.
    pub after: Option<TaskId>,
}

impl Sweep {
    /// Before which time a task must have ended in this state to be deleted.
    pub fn before(&self, status: Status) -> Option<Timestamp> {
        match status {
            Status::Success => self.success_before,
            Status::Failed => self.failed_before,
            Status::Cancelled => self.cancelled_before,
            Status::Blocked | Status::Pending | Status::Running => None,
        }
    }

    /// The latest of the times: nothing that was first due later is looked at.
    pub fn latest(&self) -> Option<Timestamp> {
        self.success_before.max(self.failed_before).max(self.cancelled_before)
    }
}

/// What a [`Sweep`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swept {
    /// How many tasks are gone.
    pub deleted: u32,
    /// Where to go on, if there may be more: the last task looked at.
    pub next: Option<TaskId>,
}

/// The end of what is kept.
#[async_trait]
pub trait Expiry {
    /// Deletes ended tasks with everything about them, in the order of their ids, up to the first
    /// that was first due no earlier than the latest of the times. It looks at
    /// [`crate::limits::SCAN_ROWS`] tasks and deletes [`crate::limits::STORE_BATCH`] at the most,
    /// fewer where they are large; a store that keeps each day apart may drop one of which nothing
    /// is kept, however many there are. A task that is replayed meanwhile stays. One that ended
    /// before it was ever due is kept until its first due time has passed by as much.
    async fn sweep(&self, sweep: Sweep) -> Result<Swept>;

    /// Forgets sessions that ended before this time, [`crate::limits::STORE_BATCH`] at the most; how
    /// many. Open ones and those whose leases were not all taken back yet stay. Tasks and attempts
    /// keep the id of their session and lose the name of their worker.
    async fn forget_sessions(&self, before: Timestamp) -> Result<u32>;
}
