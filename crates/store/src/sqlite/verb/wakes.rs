//! Which workers a transaction gives something to do, for after its commit.

use duly_core::limits::HINT_LANES;
use duly_core::ports::store::Hint;
use duly_core::time::Timestamp;

use crate::sqlite::index::lanes::{LaneId, Lanes};

#[derive(Debug, Default)]
pub(in crate::sqlite) struct Wakes {
    due: Option<Timestamp>,
    lanes: Vec<LaneId>,
    /// Whether the lanes are not all.
    anywhere: bool,
}

impl Wakes {
    /// A task waits in this lane. Neighbours are mostly in the same one.
    pub(super) fn lane(&mut self, lane: LaneId, due: Timestamp) {
        self.at(due);
        if self.anywhere || self.lanes.last() == Some(&lane) || self.lanes.contains(&lane) {
            return;
        }
        self.lanes.push(lane);
        self.anywhere = self.lanes.len() > HINT_LANES;
    }

    /// Any worker may find something to claim.
    pub(super) fn anywhere(&mut self, due: Timestamp) {
        self.at(due);
        self.anywhere = true;
    }

    fn at(&mut self, due: Timestamp) {
        self.due = Some(self.due.map_or(due, |known| known.min(due)));
    }

    /// What to send, if there is anything.
    pub(in crate::sqlite) fn hint(self, names: &Lanes) -> Option<Hint> {
        let due = self.due?;
        let named = self.lanes.iter().map(|lane| names.get(*lane).ok().cloned());
        let lanes = if self.anywhere { None } else { named.collect() };
        Some(Hint { due, lanes })
    }
}
