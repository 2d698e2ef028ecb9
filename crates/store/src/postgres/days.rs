//! The days whose tasks have a partition each. A statement names the days that it is about, since
//! one that could be about any of hundreds would be planned for all of them.

use std::ops::Range;

use duly_core::id::TaskId;
use duly_core::time::Timestamp;
use uuid::Uuid;

use super::error::Result;
use super::row;
use super::snapshot::Snapshot;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Days that one statement is about, at the most.
const WIDEST: usize = 32;

/// A day that has a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Day {
    /// Its first millisecond.
    pub(super) start: i64,
}

impl Day {
    /// The ids of tasks that are first due on it.
    pub(super) fn ids(self) -> Range<Uuid> {
        first_of(self.start)..first_of(self.start + DAY_MS)
    }

    /// Whether all of its tasks are among these.
    pub(super) fn is_whole_in(self, ids: &Range<Uuid>) -> bool {
        ids.start <= self.ids().start && self.ids().end <= ids.end
    }

    /// Its partition.
    pub(super) fn table(self) -> String {
        let date = Timestamp::clamped(self.start).to_string();
        let digits: String = date.chars().filter(char::is_ascii_digit).take(8).collect();
        format!("duly.task_{digits}")
    }
}

/// The lowest id of a task that is first due at this time.
pub(super) fn first_of(millis: i64) -> Uuid {
    row::uuid(TaskId::first_of(Timestamp::clamped(millis)))
}

/// The days that may have tasks with these ids, the first of them first.
pub(super) async fn within(snapshot: &Snapshot<'_>, ids: &Range<Uuid>) -> Result<Vec<Day>> {
    let select =
        "/* days */ SELECT extract(epoch FROM to_date(right(relname, 8), 'YYYYMMDD'))::bigint
        FROM pg_catalog.pg_inherits JOIN pg_catalog.pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = 'duly.task'::regclass AND NOT inhdetachpending";
    let rows = snapshot.query(select, &[]).await?;
    let day = |row: &tokio_postgres::Row| -> Result<Day> {
        Ok(Day { start: row.try_get::<_, i64>(0)?.saturating_mul(1000) })
    };
    let mut days: Vec<_> = rows.iter().map(day).collect::<Result<_>>()?;
    days.retain(|day| day.ids().end > ids.start && day.ids().start < ids.end);
    days.sort_unstable();
    Ok(days)
}

/// Ranges of ids, the last first, which together hold all tasks of some days: first those of one day,
/// then of more and more, so that little is looked at where little is enough.
#[derive(Debug)]
pub(super) struct Windows {
    ids: Range<Uuid>,
    days: std::vec::IntoIter<Day>,
    width: usize,
}

impl Windows {
    pub(super) async fn of(snapshot: &Snapshot<'_>, ids: Range<Uuid>) -> Result<Self> {
        let mut days = within(snapshot, &ids).await?;
        days.reverse();
        Ok(Self { ids, days: days.into_iter(), width: 1 })
    }
}

impl Iterator for Windows {
    type Item = Range<Uuid>;

    fn next(&mut self) -> Option<Range<Uuid>> {
        let last = self.days.next()?;
        let first = self.days.by_ref().take(self.width - 1).last().unwrap_or(last);
        self.width = (self.width * 2).min(WIDEST);
        Some(first.ids().start.max(self.ids.start)..last.ids().end.min(self.ids.end))
    }
}

/// Ids of tasks in parts, each of which one statement looks up. It looks for every id on every day
/// that it is about, so that few ids may be of many days and many only of few.
pub(super) fn apart(ids: impl Iterator<Item = Uuid>) -> Vec<Vec<Uuid>> {
    let mut ids: Vec<_> = ids.collect();
    ids.sort_unstable();
    let (mut parts, mut days): (Vec<Vec<Uuid>>, usize) = (Vec::new(), 0);
    let mut last = None;
    for id in ids {
        // An id begins with 48 bits of time.
        let day = (id.as_u64_pair().0 >> 16) / DAY_MS.unsigned_abs();
        days += usize::from(last.replace(day) != Some(day));
        match parts.last_mut() {
            Some(part) if days <= WIDEST && days * part.len() < LOOKS => part.push(id),
            _ => {
                days = 1;
                parts.push(vec![id]);
            }
        }
    }
    parts
}

/// Looks of one statement at a day's index.
const LOOKS: usize = 2_500;

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: i64) -> Day {
        Day { start: number * DAY_MS }
    }

    #[test]
    fn a_day_is_named_as_its_partition_is() {
        assert_eq!(day(0).table(), "duly.task_19700101");
        assert_eq!(day(21_990).table(), "duly.task_20300317");
    }

    #[test]
    fn windows_grow_and_leave_out_no_id() {
        let days: Vec<_> = (0..100).rev().map(day).collect();
        let ids = first_of(5)..first_of(99 * DAY_MS + 7);
        let windows = Windows { ids: ids.clone(), days: days.into_iter(), width: 1 };
        let windows: Vec<_> = windows.collect();
        assert_eq!((windows[0].end, windows.last().unwrap().start), (ids.end, ids.start));
        assert!(windows.windows(2).all(|pair| pair[0].start == pair[1].end), "{windows:?}");
        assert_eq!(windows.len(), 8, "1, 2, 4, 8, 16, 32, 32 and 5 days");
    }

    #[test]
    fn few_ids_are_looked_up_on_many_days_and_many_on_few() {
        let ids = |days: i64, each: i64| {
            let day = move |day| (0..each).map(move |number| first_of(day * DAY_MS + number));
            (0..days).flat_map(day)
        };
        let sizes = |days, each| apart(ids(days, each)).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(70, 2), [64, 64, 12], "no more than 32 days");
        assert_eq!(sizes(1, 6_000), [2_500, 2_500, 1_000]);
        assert_eq!(sizes(4, 1_000), [1_250, 1_250, 1_250, 250], "on two days each");
        assert_eq!(apart(ids(4, 1_000)).concat(), ids(4, 1_000).collect::<Vec<_>>());
    }
}
