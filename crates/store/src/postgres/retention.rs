//! Deleting tasks that ended long ago: a whole day at once where all of it may go, else in the order
//! of ids, page by page. There is no index by end, since every outcome would pay for it.

mod whole_day;

use std::ops::Range;

use async_trait::async_trait;
use duly_core::limits::{LOG_PIECE_OVERHEAD, SCAN_ROWS, STORE_BATCH, STORE_BATCH_BYTES};
use duly_core::ports::store::{self, Expiry, Sweep, Swept};
use duly_core::time::Timestamp;
use uuid::Uuid;

use super::PostgresStore;
use super::days::{self, Windows};
use super::error::Result;
use super::filter::Parameter;
use super::row;
use super::snapshot::Snapshot;
use super::verb::expire::Expire;

#[async_trait]
impl Expiry for PostgresStore {
    async fn sweep(&self, sweep: Sweep) -> store::Result<Swept> {
        let Some(latest) = sweep.latest() else { return Ok(Swept { deleted: 0, next: None }) };
        let below = days::first_of(latest.millis());
        let cutoffs = Cutoffs::of(&sweep);
        if let Some(swept) = self.drop_first_day(&sweep, below, cutoffs).await? {
            return Ok(swept);
        }
        let Found { tasks, next } = self.find_ended(&sweep, below, cutoffs).await?;
        let next = next.map(row::task_id);
        if tasks.is_empty() {
            return Ok(Swept { deleted: 0, next });
        }
        let deleted = self.run(&Expire { tasks, cutoffs }).await?;
        Ok(Swept { deleted, next })
    }
}

/// Before which times tasks must have ended to be deleted, by how they ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cutoffs {
    success: Option<i64>,
    failed: Option<i64>,
    cancelled: Option<i64>,
}

impl Cutoffs {
    /// Whether a row has ended so early; unknown for one that has not ended or is kept for ever.
    /// Takes [`Self::parameters`] as the first three.
    pub(super) const PASSED: &str = "finished_at < CASE status WHEN 3 THEN $1::bigint
        WHEN 4 THEN $2::bigint WHEN 5 THEN $3::bigint END";

    fn of(sweep: &Sweep) -> Self {
        let millis = |before: Option<Timestamp>| before.map(Timestamp::millis);
        Self {
            success: millis(sweep.success_before),
            failed: millis(sweep.failed_before),
            cancelled: millis(sweep.cancelled_before),
        }
    }

    pub(super) fn parameters(&self) -> [Parameter<'_>; 3] {
        [&self.success, &self.failed, &self.cancelled]
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
                + (SELECT coalesce(sum(octet_length(text) + $8), 0) FROM duly.log
                   WHERE log.task = old.id) END
         FROM (SELECT id, status, finished_at, payload, result FROM duly.task
               WHERE id > $4 AND id >= $5 AND id < $6 ORDER BY id LIMIT $7) old ORDER BY id"
    )
}

/// Tasks that are looked at in one statement.
const PORTION: usize = 2_500;

impl PostgresStore {
    /// Looks for tasks that may go, as many as one call may look at.
    async fn find_ended(&self, sweep: &Sweep, below: Uuid, cutoffs: Cutoffs) -> Result<Found> {
        let mut client = self.pool.get().await?;
        let snapshot = Snapshot::take(&mut client).await?;
        let last = sweep.after.map_or(Uuid::nil(), row::uuid);
        let windows = Windows::first_first(&snapshot, last..below).await?;
        let mut look = Look { snapshot, cutoffs, last, rows: 0, bytes: 0, found: Found::default() };
        for window in windows {
            if !look.at(window).await? {
                break;
            }
        }
        Ok(look.found)
    }
}

/// How far a call has looked.
struct Look<'a> {
    snapshot: Snapshot<'a>,
    cutoffs: Cutoffs,
    last: Uuid,
    rows: u32,
    bytes: usize,
    found: Found,
}

impl Look<'_> {
    /// Looks at tasks with these ids; whether the call may go on behind them.
    async fn at(&mut self, ids: Range<Uuid>) -> Result<bool> {
        let portion = i64::try_from(PORTION).expect("a small number");
        let overhead = i32::try_from(LOG_PIECE_OVERHEAD).expect("a small number");
        loop {
            let (cutoffs, last) = (self.cutoffs, self.last);
            let mut parameters = cutoffs.parameters().to_vec();
            parameters.extend([&last as Parameter<'_>, &ids.start, &ids.end, &portion, &overhead]);
            let rows = self.snapshot.query(&ended(), &parameters).await?;
            for row in &rows {
                let full = self.found.tasks.len() == STORE_BATCH || self.bytes > STORE_BATCH_BYTES;
                if self.rows == SCAN_ROWS || full {
                    self.found.next = Some(self.last);
                    return Ok(false);
                }
                self.rows += 1;
                self.last = row.try_get(0)?;
                if let Some(bytes) = row.try_get::<_, Option<i64>>(1)? {
                    self.bytes += usize::try_from(bytes).unwrap_or_default();
                    self.found.tasks.push(self.last);
                }
            }
            if rows.len() < PORTION {
                return Ok(true);
            }
        }
    }
}
