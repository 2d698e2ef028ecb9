//! Bugs that a test build carries, asleep. One that is switched on must be found by the tests that
//! claim to look for it; a build without the feature has none of this.

mod early_position;

use std::fmt;
use std::str::FromStr;

pub use self::early_position::with_early_positions;

/// A bug that can be switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// A submit is answered before it is committed.
    AcknowledgeBeforeCommit,
    /// An outcome is accepted under any lease of the task, from any worker.
    FinishWithoutEpoch,
    /// The end of a session takes back the tasks it once had, also from those who have them now.
    ReapById,
    /// After a retry or a loss the next grant has the same number as the last.
    EpochResetOnRetry,
    /// The beat of a session that has ended opens it again and gives back the leases it had.
    BeatAfterEnd,
    /// A commit that found no room on the disk is answered as if it had been made.
    SwallowDiskFull,
    /// Parents that end in one call count as one for their child.
    CountParentsOnce,
    /// A task's children are released as it is granted, before its outcome is committed.
    ReleaseBeforeCommit,
    /// The id of a slot's task does not depend on the generation of its schedule.
    SlotIdWithoutGeneration,
    /// What a user changes is written to the audit log after the commit of the change.
    AuditOutsideCommit,
    /// What a relay has read counts as received by its sink. A layer has this one, see
    /// [`with_early_positions`].
    PositionBeforeDelivery,
    /// On PostgreSQL: a node takes an answer that arrives late for a clock that was set back, and
    /// computes due times from its own idea of the time.
    LateReading,
    /// On PostgreSQL: a node reads for a caller and does not say for which tenant.
    ForgottenTenant,
    /// On PostgreSQL: readers of events go by the last number that there was.
    EventsByNumber,
}

impl PlantedBug {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::AcknowledgeBeforeCommit,
        Self::FinishWithoutEpoch,
        Self::ReapById,
        Self::EpochResetOnRetry,
        Self::BeatAfterEnd,
        Self::SwallowDiskFull,
        Self::CountParentsOnce,
        Self::ReleaseBeforeCommit,
        Self::SlotIdWithoutGeneration,
        Self::AuditOutsideCommit,
        Self::PositionBeforeDelivery,
        Self::LateReading,
        Self::ForgottenTenant,
        Self::EventsByNumber,
    ];

    /// Its name on a command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AcknowledgeBeforeCommit => "acknowledge-before-commit",
            Self::FinishWithoutEpoch => "finish-without-epoch",
            Self::ReapById => "reap-by-id",
            Self::EpochResetOnRetry => "epoch-reset-on-retry",
            Self::BeatAfterEnd => "beat-after-end",
            Self::SwallowDiskFull => "swallow-disk-full",
            Self::CountParentsOnce => "count-parents-once",
            Self::ReleaseBeforeCommit => "release-before-commit",
            Self::SlotIdWithoutGeneration => "slot-id-without-generation",
            Self::AuditOutsideCommit => "audit-outside-commit",
            Self::PositionBeforeDelivery => "position-before-delivery",
            Self::LateReading => "late-reading",
            Self::ForgottenTenant => "forgotten-tenant",
            Self::EventsByNumber => "events-by-number",
        }
    }
}

impl fmt::Display for PlantedBug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// There is no bug of this name.
#[derive(Debug, thiserror::Error)]
#[error("no planted bug is called {0}")]
pub struct NoSuchBug(String);

impl FromStr for PlantedBug {
    type Err = NoSuchBug;

    fn from_str(name: &str) -> std::result::Result<Self, NoSuchBug> {
        let known = Self::ALL.into_iter().find(|bug| bug.as_str() == name);
        known.ok_or_else(|| NoSuchBug(name.to_owned()))
    }
}
