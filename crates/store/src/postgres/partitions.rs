//! The days of the task table. Those of the next week are made ahead, others when the first task
//! comes that needs them.

use std::collections::BTreeSet;

use duly_core::id::TaskId;

use super::error::Result;
use super::node::Node;

/// How many days are made ahead.
const AHEAD: i32 = 7;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The days of these tasks.
pub(super) fn of(tasks: impl Iterator<Item = TaskId>) -> BTreeSet<i32> {
    tasks.map(|task| day(task.first_due().millis())).collect()
}

/// The day of a time, counted from 1970.
pub(super) fn day(millis: i64) -> i32 {
    i32::try_from(millis.div_euclid(DAY_MS)).unwrap_or(i32::MAX)
}

/// How long a submit waits for another transaction that creates the same day and has not committed yet.
/// Other submits wait for it meanwhile.
pub(super) const SUBMIT_PATIENCE: &str = "1s";

impl Node {
    /// Makes sure that today and the next days are there.
    pub(super) async fn make_next_days(&self) -> Result<()> {
        let today = day(self.estimate());
        self.make_days((today..=today + AHEAD).collect()).await
    }

    /// Makes sure that these days are there.
    pub(super) async fn make_days(&self, days: BTreeSet<i32>) -> Result<()> {
        let client = self.pool.get().await?;
        let days: Vec<_> = days.into_iter().collect();
        let select = "/* partition.missing */ SELECT d.day FROM unnest($1::integer[]) d(day)
            WHERE to_regclass('duly.task_' || to_char(date '1970-01-01' + d.day, 'YYYYMMDD'))
                  IS NULL";
        for row in client.query(select, &[&days]).await? {
            // One transaction each: others wait for one of them and no more.
            let day: i32 = row.try_get(0)?;
            let make = "/* partition.make */ SELECT set_config('lock_timeout', $2, true),
                duly.make_day($1)";
            client.execute(make, &[&day, &SUBMIT_PATIENCE]).await?;
        }
        Ok(())
    }
}
