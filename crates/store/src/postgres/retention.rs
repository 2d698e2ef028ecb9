//! Deleting tasks that ended long ago: a whole day at once where all of it may go, else in the order
//! of ids, page by page. There is no index by end, since every outcome would pay for it.

mod cutoffs;
#[cfg(test)]
mod tests;
mod whole_day;

use std::ops::Range;

use async_trait::async_trait;
use duly_core::limits::{LOG_PIECE_OVERHEAD, SCAN_ROWS, STORE_BATCH, STORE_BATCH_BYTES};
use duly_core::ports::store::{self, Expiry, Sweep, Swept};
use duly_core::time::Timestamp;
use uuid::Uuid;

pub(super) use self::cutoffs::Cutoffs;
use super::PostgresStore;
use super::days::{self, Day};
use super::error::Result;
use super::filter::Parameter;
use super::row;
use super::snapshot::Snapshot;
use super::verb::expire::{Expire, ForgetSessions};

#[async_trait]
impl Expiry for PostgresStore {
    async fn sweep(&self, sweep: Sweep) -> store::Result<Swept> {
        let Some(latest) = sweep.latest() else { return Ok(Swept { deleted: 0, next: None }) };
        let after = sweep.after.map_or(Uuid::nil(), row::uuid);
        let ids = after..days::first_of(latest.millis());
        let cutoffs = Cutoffs::of(&sweep);
        let days = self.days_to_sweep(&ids).await?;
        if let Some(day) = days.first().filter(|day| day.is_whole_in(&ids))
            && let Some(deleted) = self.drop_day(*day, &cutoffs).await?
        {
            return Ok(Swept { deleted, next: Some(row::task_id(day.ids().end)) });
        }
        // No further than to the next day that may be dropped.
        let next_day = days.iter().skip(1).find(|day| day.is_whole_in(&ids));
        let end = next_day.map_or(ids.end, |day| day.ids().start);
        let Found { tasks, next } = self.find_ended(after..end, &cutoffs).await?;
        let next = next.or(next_day.map(|_| end)).map(row::task_id);
        let deleted = match tasks.is_empty() {
            true => 0,
            false => self.run(&Expire { tasks, cutoffs }).await?,
        };
        Ok(Swept { deleted, next })
    }

    async fn forget_sessions(&self, before: Timestamp) -> store::Result<u32> {
        Ok(self.run(&ForgetSessions { before }).await?)
    }
}

/// What one call may delete.
#[derive(Debug, Default)]
struct Found {
    tasks: Vec<Uuid>,
    /// The last task looked at, if there may be more.
    next: Option<Uuid>,
}

/// Tasks in the order of their ids; what deleting those frees that may go. Lengths are beside the
/// texts: none is read.
fn ended() -> String {
    let passed = Cutoffs::PASSED;
    format!(
        "/* sweep.find */ SELECT id, CASE WHEN {passed} THEN octet_length(payload)
                + coalesce(octet_length(result), 0)
                + coalesce((SELECT octet_length(checkpoint) FROM duly.progress
                            WHERE progress.task = old.id), 0)
                + (SELECT coalesce(sum(octet_length(text) + $11), 0) FROM duly.log
                   WHERE log.task = old.id) END
         FROM (SELECT id, status, finished_at, lane, payload, result FROM duly.task
               WHERE id > $8 AND id < $9 ORDER BY id LIMIT $10) old ORDER BY id"
    )
}

/// Tasks that are looked at in one statement.
const PORTION: usize = 2_500;

impl PostgresStore {
    /// The days that a sweep has before it, the first of them first.
    async fn days_to_sweep(&self, ids: &Range<Uuid>) -> Result<Vec<Day>> {
        let mut client = self.pool.get().await?;
        let snapshot = Snapshot::take(&mut client).await?;
        days::within(&snapshot, ids).await
    }

    /// Looks for tasks behind an id and below another that may go, as many as one call may look at.
    async fn find_ended(&self, ids: Range<Uuid>, cutoffs: &Cutoffs) -> Result<Found> {
        let portion = i64::try_from(PORTION).expect("a small number");
        let overhead = i32::try_from(LOG_PIECE_OVERHEAD).expect("a small number");
        let mut client = self.pool.get().await?;
        let snapshot = Snapshot::take(&mut client).await?;
        let (mut found, mut last) = (Found::default(), ids.start);
        let (mut looked, mut bytes) = (0, 0);
        loop {
            let after = last;
            let mut parameters = cutoffs.parameters().to_vec();
            parameters.extend([&after as Parameter<'_>, &ids.end, &portion, &overhead]);
            let rows = snapshot.query(&ended(), &parameters).await?;
            for row in &rows {
                let full = found.tasks.len() == STORE_BATCH || bytes > STORE_BATCH_BYTES;
                if looked == SCAN_ROWS || full {
                    return Ok(Found { next: Some(last), ..found });
                }
                looked += 1;
                last = row.try_get(0)?;
                if let Some(weight) = row.try_get::<_, Option<i64>>(1)? {
                    bytes += usize::try_from(weight).unwrap_or_default();
                    found.tasks.push(last);
                }
            }
            if rows.len() < PORTION {
                return Ok(found);
            }
        }
    }
}
