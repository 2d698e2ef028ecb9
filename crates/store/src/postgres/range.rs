//! Ranges of the due table: a lane and a rank.

use duly_core::limits::PRIORITY;
use duly_core::task::Priority;

/// Numbers a lane.
pub(super) type LaneId = i32;

/// One range of the due table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Range {
    pub(super) lane: LaneId,
    /// 0 is the highest priority. Quarantined tasks have their own ranks after all others.
    pub(super) rank: i16,
}

/// How many ranks there are; that of a quarantined task is this much higher.
pub(super) const RANKS: i16 = PRIORITY as i16 + 1;

impl Range {
    pub(super) fn is_quarantined(self) -> bool {
        self.rank >= RANKS
    }

    /// The same range for tasks that are quarantined, or are not.
    pub(super) fn with_quarantine(self, quarantined: bool) -> Self {
        let rank = self.rank % RANKS + if quarantined { RANKS } else { 0 };
        Self { rank, ..self }
    }
}

/// The rank of a task that is not quarantined.
pub(super) fn rank(priority: Priority) -> i16 {
    priority.rank().into()
}

/// The priority of a rank; `None` for one that no priority has.
pub(super) fn priority(rank: i16) -> Option<Priority> {
    let plain = if rank >= RANKS { rank - RANKS } else { rank };
    u8::try_from(plain).ok().and_then(Priority::from_rank)
}
