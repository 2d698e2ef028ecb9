//! What a transaction changes in the due table, for after its commit.

use duly_core::limits::HINT_LANES;
use duly_core::name::Lane;
use duly_core::ports::store::Hint;
use duly_core::time::Timestamp;
use foldhash::{HashMap, HashSet};

use super::range::{LaneId, Range};

#[derive(Debug, Default)]
pub(super) struct Wakes {
    /// The earliest new run time of each range.
    added: HashMap<Range, i64>,
    /// Ranges from which tasks were removed.
    removed: HashSet<Range>,
    /// Ranges that were read after all that.
    seen: HashSet<Range>,
    /// From when on tasks can be claimed that were there before.
    anywhere: Option<Timestamp>,
    /// Lanes that were created.
    lanes: HashMap<Lane, LaneId>,
    /// Whether leases were revoked whose holders are to be notified.
    revoked: bool,
    /// Whether events were written.
    told: bool,
}

impl Wakes {
    /// A task waits in this range.
    pub(super) fn add(&mut self, range: Range, run_at: i64) {
        let known = self.added.entry(range).or_insert(run_at);
        *known = run_at.min(*known);
    }

    /// A task no longer waits in this range.
    pub(super) fn remove(&mut self, range: Range) {
        self.removed.insert(range);
    }

    /// The range was read: its start is known better than from here.
    pub(super) fn seen(&mut self, range: Range) {
        self.seen.insert(range);
    }

    /// Tasks can be claimed in any lane.
    pub(super) fn anywhere(&mut self, due: Timestamp) {
        self.anywhere = Some(self.anywhere.map_or(due, |known| known.min(due)));
    }

    /// Leases were revoked, and their holders are to be notified.
    pub(super) fn revoke(&mut self) {
        self.revoked = true;
    }

    /// Whether holders of leases are to be notified that these are revoked.
    pub(super) fn has_revoked(&self) -> bool {
        self.revoked
    }

    /// Events were written.
    pub(super) fn tell(&mut self) {
        self.told = true;
    }

    /// Whether events were written.
    pub(super) fn has_told(&self) -> bool {
        self.told
    }

    /// These lanes are new.
    pub(super) fn make(&mut self, lanes: impl IntoIterator<Item = (Lane, LaneId)>) {
        self.lanes.extend(lanes);
    }

    /// The number of a lane that is new.
    pub(super) fn made(&self, lane: &Lane) -> Option<LaneId> {
        self.lanes.get(lane).copied()
    }

    pub(super) fn take_lanes(&mut self) -> HashMap<Lane, LaneId> {
        std::mem::take(&mut self.lanes)
    }

    /// From when on tasks can be claimed that were there before.
    pub(super) fn any(&self) -> Option<Timestamp> {
        self.anywhere
    }

    /// Ranges from which tasks were removed and that were not read since.
    pub(super) fn unsettled(&self) -> Vec<Range> {
        self.removed.difference(&self.seen).copied().collect()
    }

    /// Where tasks wait from now on, and since when.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (Range, i64)> {
        self.added.iter().map(|(range, at)| (*range, *at))
    }

    /// The same without those that were read.
    pub(super) fn unseen(&self) -> impl Iterator<Item = (Range, i64)> {
        self.ranges().filter(|(range, _)| !self.seen.contains(range))
    }

    /// The hint to send, if any. A lane whose queue is paused is left out: to resume it sends a hint of
    /// its own.
    pub(super) fn hint(&self, name: impl Fn(LaneId) -> Option<Lane>) -> Option<Hint> {
        let mut hint = self.anywhere.map(Hint::anywhere);
        let mut named: HashMap<LaneId, i64> = HashMap::default();
        for (range, at) in self.ranges() {
            let known = named.entry(range.lane).or_insert(at);
            *known = at.min(*known);
        }
        let many = named.len() > HINT_LANES;
        for (lane, at) in named {
            let Some(lane) = name(lane) else { continue };
            let lanes = (!many).then(|| [lane].into());
            let next = Hint { due: Timestamp::clamped(at), lanes };
            hint = Some(match hint {
                Some(hint) => hint.merge(next),
                None => next,
            });
        }
        hint
    }
}
