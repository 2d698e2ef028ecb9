//! Deleting tasks that ended long ago.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::Result;
use crate::id::TaskId;
use crate::name::TenantName;
use crate::settings::Retention;
use crate::state::Status;
use crate::time::Timestamp;

/// Before which times ended tasks go, by their outcome; those of an outcome without one stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cutoffs {
    /// SUCCESS that ended before this time.
    pub success: Option<Timestamp>,
    /// FAILED that ended before this time.
    pub failed: Option<Timestamp>,
    /// CANCELLED that ended before this time.
    pub cancelled: Option<Timestamp>,
}

impl Cutoffs {
    /// What is older than this now.
    pub fn of(retention: Retention, now: Timestamp) -> Self {
        let Retention { success, failed, cancelled } = retention;
        let [success, failed, cancelled] =
            [success, failed, cancelled].map(|period| period.map(|period| now.minus(period)));
        Self { success, failed, cancelled }
    }

    /// Before which time a task must have ended in this state to be deleted.
    pub fn before(&self, status: Status) -> Option<Timestamp> {
        match status {
            Status::Success => self.success,
            Status::Failed => self.failed,
            Status::Cancelled => self.cancelled,
            Status::Blocked | Status::Pending | Status::Running => None,
        }
    }

    fn latest(&self) -> Option<Timestamp> {
        self.success.max(self.failed).max(self.cancelled)
    }
}

/// Which ended tasks to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Those of all tenants without cutoffs of their own.
    pub cutoffs: Cutoffs,
    /// Those of tenants with a retention of their own, instead.
    pub tenants: Arc<BTreeMap<TenantName, Cutoffs>>,
    /// Only tasks whose id is above this one.
    pub after: Option<TaskId>,
}

impl Sweep {
    /// What holds for the tasks of a tenant.
    pub fn cutoffs_of(&self, tenant: &TenantName) -> &Cutoffs {
        self.tenants.get(tenant).unwrap_or(&self.cutoffs)
    }

    /// The latest of the times: nothing that was first due later is looked at.
    pub fn latest(&self) -> Option<Timestamp> {
        let own = self.tenants.values().filter_map(Cutoffs::latest).max();
        self.cutoffs.latest().max(own)
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_shortest_retention_of_all_says_how_far_to_look() {
        let now = Timestamp::from_millis(1_900_000_000_000);
        let of = |seconds: u64| {
            let period = Some(Duration::from_secs(seconds));
            Cutoffs::of(Retention { success: period, ..Retention::FOREVER }, now)
        };
        let acme = TenantName::new("acme").unwrap();
        let with = |cutoffs, own| Sweep {
            cutoffs,
            tenants: Arc::new(BTreeMap::from([(acme.clone(), own)])),
            after: None,
        };
        let never = Cutoffs::default();
        let ago = |seconds| Some(now.minus(Duration::from_secs(seconds)));
        assert_eq!(with(of(60), of(5)).latest(), ago(5));
        assert_eq!(with(of(60), of(90)).latest(), ago(60));
        assert_eq!(with(never, of(5)).latest(), ago(5));
        assert_eq!(with(of(60), never).latest(), ago(60));
        assert_eq!(Sweep::default().latest(), None);
        let sweep = with(of(60), never);
        assert_eq!(sweep.cutoffs_of(&acme), &never, "for ever, whatever the others have");
        assert_eq!(sweep.cutoffs_of(&TenantName::default_tenant()), &of(60));
    }
}
