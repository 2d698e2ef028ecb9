//! Ranges of the due table: a lane and a rank.

use duly_core::limits::PRIORITY;
use duly_core::task::Priority;

/// Numbers a lane.
pub(super) type LaneId = i32;

/// One range of the due table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Range {
    pub(super) lane: LaneId,
    /// Upside down; suspects have ranks of their own beyond those of the others.
    pub(super) rank: i16,
}

/// How many ranks there are; that of a suspect is so much higher.
pub(super) const RANKS: i16 = PRIORITY as i16 + 1;

impl Range {
    pub(super) fn is_suspect(self) -> bool {
        self.rank >= RANKS
    }

    /// The same range for tasks that are above suspicion, or are not.
    pub(super) fn suspecting(self, suspect: bool) -> Self {
        let rank = self.rank % RANKS + if suspect { RANKS } else { 0 };
        Self { rank, ..self }
    }
}

/// The rank of a task that is above suspicion.
pub(super) fn rank(priority: Priority) -> i16 {
    priority.rank().into()
}

/// The priority of a rank; nothing for one that no priority has.
pub(super) fn priority(rank: i16) -> Option<Priority> {
    let plain = if rank >= RANKS { rank - RANKS } else { rank };
    u8::try_from(plain).ok().and_then(Priority::from_rank)
}
