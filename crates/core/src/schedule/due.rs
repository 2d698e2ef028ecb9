//! What becomes of the slots that are due: the misfire rule.

use crate::limits::{ALL_MISSED, MISFIRE, SLOT_LOG};
use crate::time::Timestamp;

use super::policy::{Misfire, SkipReason};
use super::rule::Rule;

/// Whether a slot runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does, unless the overlap rule objects.
    Run,
    /// It does not.
    Skip(SkipReason),
}

/// A slot that is due, and whether it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueSlot {
    /// The slot.
    pub slot: Timestamp,
    /// Whether it runs.
    pub verdict: Verdict,
}

/// The slots that are due, and the next one after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Oldest first. All that run are among them, at most 1,000, and the newest 100 of those that do not.
    pub slots: Vec<DueSlot>,
    /// The first slot that is not due yet.
    pub next: Option<Timestamp>,
}

impl Rule {
    /// Decides the slots after `position`, up to and including `now`. What this costs does not grow with
    /// the time between them.
    pub fn due(&self, position: Timestamp, now: Timestamp) -> Due {
        let (mut run, mut skipped) = (0, 0);
        let mut slots = Vec::new();
        for (age, slot) in self.newest(position, now, ALL_MISSED + SLOT_LOG).into_iter().enumerate()
        {
            let mut verdict = self.judge(slot, now, age == 0);
            if verdict == Verdict::Run && run == ALL_MISSED {
                verdict = Verdict::Skip(SkipReason::TooMany);
            }
            match verdict {
                Verdict::Run => run += 1,
                Verdict::Skip(_) => skipped += 1,
            }
            // Slots come newest first, and each that runs is newer than each that the limit cuts off or
            // that is skipped for its age: from here on all are skipped.
            if skipped > SLOT_LOG {
                break;
            }
            slots.push(DueSlot { slot, verdict });
        }
        slots.reverse();
        Due { slots, next: self.next(now) }
    }

    /// What becomes of one slot, apart from the limit on how many run.
    fn judge(&self, slot: Timestamp, now: Timestamp, is_newest: bool) -> Verdict {
        let late = now.since(slot);
        if late <= MISFIRE {
            return Verdict::Run;
        }
        if late > self.catch_up {
            return Verdict::Skip(SkipReason::TooOld);
        }
        match self.misfire {
            Misfire::All => Verdict::Run,
            Misfire::Latest if is_newest => Verdict::Run,
            Misfire::Latest | Misfire::Skip => Verdict::Skip(SkipReason::Missed),
        }
    }
}

#[cfg(test)]
mod tests;
