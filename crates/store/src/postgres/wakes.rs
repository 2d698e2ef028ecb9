//! What a transaction puts into the due table, for after its commit.

use duly_core::time::Timestamp;
use foldhash::HashMap;

use super::range::Range;

#[derive(Debug, Default)]
pub(super) struct Wakes {
    /// The earliest new run time of each range.
    ranges: HashMap<Range, i64>,
    /// From when on somebody may claim something that was there before.
    anywhere: Option<Timestamp>,
}

impl Wakes {
    /// A task waits in this range.
    pub(super) fn add(&mut self, range: Range, run_at: i64) {
        let known = self.ranges.entry(range).or_insert(run_at);
        *known = run_at.min(*known);
    }

    /// Something can be claimed by somebody.
    pub(super) fn anywhere(&mut self, due: Timestamp) {
        self.anywhere = Some(self.anywhere.map_or(due, |known| known.min(due)));
    }
}
