//! Rows of ranges, counted until it is enough.

use duly_core::ports::store::Counted;
use rusqlite::{Connection, OptionalExtension as _, ToSql, params};

use crate::sqlite::error::Result;
use crate::sqlite::index::heads::Range;
use crate::sqlite::index::lanes::LaneId;

/// Counts rows of several ranges until it is enough.
pub(super) struct Count {
    bound: u32,
    found: u32,
}

impl Count {
    pub(super) fn to(bound: u32) -> Self {
        Self { bound, found: 0 }
    }

    /// Whether more rows would change nothing.
    pub(super) fn is_full(&self) -> bool {
        self.found > self.bound
    }

    /// Adds the rows of a table in a range, one more than the bound at the most. Answers whether
    /// there may be any.
    pub(super) fn add(
        &mut self,
        connection: &Connection,
        rows: &str,
        range: &[&dyn ToSql],
    ) -> Result<bool> {
        if self.is_full() {
            return Ok(true);
        }
        let left = self.bound.saturating_add(1) - self.found;
        let text = format!("/* queue.count */ SELECT count(*) FROM (SELECT 1 FROM {rows} LIMIT ?)");
        let mut values = range.to_vec();
        values.push(&left);
        let found: u32 = connection.prepare_cached(&text)?.query_row(&*values, |row| row.get(0))?;
        self.found += found;
        Ok(found > 0)
    }

    /// What was counted; there are more too if not everything was looked at.
    pub(super) fn counted(&self, unseen: bool) -> Counted {
        let counted = Counted::up_to(self.bound, self.found as usize);
        Counted { more: counted.more || unseen, ..counted }
    }
}

/// The ranges of a lane and their first run times; skips from one to the next.
pub(super) fn ranges(connection: &Connection, lane: LaneId) -> Result<Vec<(Range, i64)>> {
    let mut next = connection.prepare_cached(
        "/* queue.ranges */ SELECT rank, run_at FROM due WHERE lane = ? AND rank > ?
         ORDER BY rank, run_at LIMIT 1",
    )?;
    let (mut ranges, mut last) = (Vec::new(), -1_i64);
    loop {
        let found = next
            .query_row(params![lane, last], |row| Ok((row.get::<_, u8>(0)?, row.get(1)?)))
            .optional()?;
        let Some((rank, run_at)) = found else { return Ok(ranges) };
        ranges.push((Range { lane, rank }, run_at));
        last = rank.into();
    }
}
