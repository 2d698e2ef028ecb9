//! The earliest run time of every (lane, rank) that has waiting tasks: tells without a query
//! which ranges are due, which lanes are drained, and when to wake up next.

use std::collections::BTreeSet;

use duly_core::limits::PRIORITY;
use duly_core::task::Priority;
use foldhash::HashMap;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::lanes::LaneId;
use crate::sqlite::error::Result;

/// One range of the due table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::sqlite) struct Range {
    pub(in crate::sqlite) lane: LaneId,
    /// The inverted priority. Quarantined tasks have ranks of their own, beyond the other ones.
    pub(in crate::sqlite) rank: u8,
}

/// How many ranks there are; that of a quarantined task is so much higher.
const RANKS: u8 = PRIORITY + 1;

impl Range {
    pub(in crate::sqlite) fn is_quarantined(self) -> bool {
        self.rank >= RANKS
    }

    /// The same range for tasks that are quarantined, or are not.
    pub(in crate::sqlite) fn quarantined(self, quarantined: bool) -> Self {
        let rank = self.rank % RANKS + if quarantined { RANKS } else { 0 };
        Self { rank, ..self }
    }

    /// Nothing for a rank that no priority has: only a damaged file holds such rows.
    pub(in crate::sqlite) fn priority(self) -> Option<Priority> {
        Priority::from_rank(self.rank).or_else(|| Priority::from_rank(self.rank - RANKS))
    }
}

#[derive(Debug, Default)]
pub(in crate::sqlite) struct Heads {
    by_range: HashMap<Range, i64>,
    by_time: BTreeSet<(i64, Range)>,
}

impl Heads {
    /// Skips from range to range, one probe each, however many rows lie between.
    pub(super) fn load(connection: &Connection) -> Result<Self> {
        let mut heads = Self::default();
        let mut next = connection.prepare(
            "SELECT lane, rank, run_at FROM due WHERE (lane, rank) > (?, ?)
             ORDER BY lane, rank, run_at LIMIT 1",
        )?;
        let mut last = Range { lane: -1, rank: 0 };
        loop {
            let found = next
                .query_row(params![last.lane, last.rank], |row| {
                    Ok((Range { lane: row.get(0)?, rank: row.get(1)? }, row.get(2)?))
                })
                .optional()?;
            let Some((range, run_at)) = found else { return Ok(heads) };
            heads.set(range, Some(run_at));
            last = range;
        }
    }

    /// A task waits here from now on.
    pub(in crate::sqlite) fn add(&mut self, range: Range, run_at: i64) {
        let known = self.by_range.get(&range).copied();
        if known.is_none_or(|known| run_at < known) {
            self.set(range, Some(run_at));
        }
    }

    /// Tasks were taken from here: look where the range starts now.
    pub(in crate::sqlite) fn refresh(
        &mut self,
        connection: &Connection,
        range: Range,
    ) -> Result<()> {
        let mut statement = connection.prepare_cached(
            "/* due.head */ SELECT run_at FROM due WHERE lane = ? AND rank = ?
             ORDER BY run_at LIMIT 1",
        )?;
        let head =
            statement.query_row(params![range.lane, range.rank], |row| row.get(0)).optional()?;
        self.set(range, head);
        Ok(())
    }

    /// Tasks were taken from here, and the range starts at this time now.
    pub(in crate::sqlite) fn begins_at(&mut self, range: Range, run_at: i64) {
        self.set(range, Some(run_at));
    }

    /// Ranges with something due and the time of their first task, earliest first.
    pub(in crate::sqlite) fn due(&self, now: i64) -> impl Iterator<Item = (i64, Range)> {
        self.by_time.iter().copied().take_while(move |(at, _)| *at <= now)
    }

    /// The first head in one of these ranges.
    pub(in crate::sqlite) fn next(&self, counts: impl Fn(i64, Range) -> bool) -> Option<i64> {
        self.by_time.iter().find(|(at, range)| counts(*at, *range)).map(|(at, _)| *at)
    }

    /// Whether nothing in the lane is due but quarantined tasks.
    pub(in crate::sqlite) fn is_drained(&self, lane: LaneId, now: i64) -> bool {
        let due = |rank| self.by_range.get(&Range { lane, rank }).is_some_and(|at| *at <= now);
        !(0..=PRIORITY).any(due)
    }

    fn set(&mut self, range: Range, head: Option<i64>) {
        let old = match head {
            Some(at) => self.by_range.insert(range, at),
            None => self.by_range.remove(&range),
        };
        if let Some(at) = old {
            self.by_time.remove(&(at, range));
        }
        if let Some(at) = head {
            self.by_time.insert((at, range));
        }
    }
}
