//! Backfills: slots of the past that are run afterwards.

use serde::{Deserialize, Serialize};

use crate::id::ScheduleId;
use crate::name::ScheduleName;
use crate::time::Timestamp;

/// An order to run the slots of some time, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackfillOrder {
    /// The schedule.
    pub id: ScheduleId,
    /// Its name.
    pub schedule: ScheduleName,
    /// The first slot may lie here.
    pub from: Timestamp,
    /// The last slot may lie here.
    pub to: Timestamp,
    /// How many slots there were when the order was given.
    pub slots: u64,
}

/// How far a backfill has come: its note for its next attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackfillNote {
    /// Slots up to here are done.
    pub after: Option<Timestamp>,
    /// Slots that it has run.
    pub ran: u64,
    /// Slots that had run before.
    pub ran_before: u64,
    /// Slots to which the overlap rule objected.
    pub skipped: u64,
}

impl BackfillNote {
    /// How many slots are done.
    pub fn done(&self) -> u64 {
        self.ran + self.ran_before + self.skipped
    }
}
