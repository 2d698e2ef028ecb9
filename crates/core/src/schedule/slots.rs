//! From local times that match to instants.
//!
//! Time falls into segments in which the clocks of the zone are not changed; within one, local times and
//! instants correspond one to one. What a change leaves out (a gap) or repeats belongs to the segment
//! that begins with it:
//!
//! - slots in a gap become one slot at the first instant after it;
//! - fixed times in a repeated hour were slots before the change and are not slots again;
//! - wildcards and steps go on, and so have slots on both sides of the change.

use super::cron::Cron;
use super::zone::{Segment, Zone};

/// Finds slots of one expression, and remembers the segment that the last one was found in.
pub(super) struct Slots<'a> {
    cron: &'a Cron,
    zone: &'a Zone,
    segment: Segment,
}

impl<'a> Slots<'a> {
    /// Slots around an instant.
    pub(super) fn near(cron: &'a Cron, zone: &'a Zone, instant: i64) -> Self {
        Self { cron, zone, segment: zone.segment(instant) }
    }

    /// The first slot from `from` to `last`, both included.
    pub(super) fn first(&mut self, mut from: i64, last: i64) -> Option<i64> {
        while from <= last {
            let segment = self.move_to(from);
            if from == segment.start && self.is_gap_due() {
                return Some(from);
            }
            let local = from.max(self.begin()) + segment.offset;
            let end = segment.end.min(last.saturating_add(1));
            if let Some(found) = self.cron.first_local(local, end - 1 + segment.offset) {
                return Some(found - segment.offset);
            }
            from = segment.end;
        }
        None
    }

    /// The last slot from `first` to `until`, both included.
    pub(super) fn last(&mut self, first: i64, mut until: i64) -> Option<i64> {
        while until >= first {
            let segment = self.move_to(until);
            let begin = self.begin().max(first);
            let (begin, until_local) = (begin + segment.offset, until + segment.offset);
            if let Some(found) = self.cron.last_local(begin, until_local) {
                return Some(found - segment.offset);
            }
            if segment.start >= first && self.is_gap_due() {
                return Some(segment.start);
            }
            until = segment.start - 1;
        }
        None
    }

    fn move_to(&mut self, instant: i64) -> Segment {
        if !self.segment.contains(instant) {
            self.segment = self.zone.segment(instant);
        }
        self.segment
    }

    /// The instant from which on local times of the segment count.
    fn begin(&self) -> i64 {
        let segment = self.segment;
        let repeated = segment.repeated().filter(|_| !self.cron.repeats());
        repeated.map_or(segment.start, |(_, last)| last + 1 - segment.offset)
    }

    /// Whether a slot fell into the gap with which the segment begins.
    fn is_gap_due(&self) -> bool {
        let gap = self.segment.gap();
        gap.is_some_and(|(first, last)| self.cron.first_local(first, last).is_some())
    }
}
