//! Dropping the partition of a day of which nothing is kept: far cheaper than deleting its rows.

use duly_core::ports::store::{Sweep, Swept};
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use super::Cutoffs;
use crate::postgres::days::{self, Day};
use crate::postgres::error::{Fault, Result};
use crate::postgres::filter::Parameter;
use crate::postgres::snapshot::Snapshot;
use crate::postgres::verb::delete::BESIDES_RANGE;
use crate::postgres::{PostgresStore, row};

/// Rows of a day are read once, as they lie; a day that takes longer is deleted page by page. For
/// as long its tasks cannot be replayed, which is why it must not take longer. The drop itself stops
/// everybody, so that it must come about at once.
const SETTINGS: &str = "SET LOCAL enable_seqscan = on; SET LOCAL statement_timeout = '3s';
    SET LOCAL lock_timeout = '200ms'";

impl PostgresStore {
    /// Drops the first day that a sweep comes upon, if all of it may go.
    pub(super) async fn drop_first_day(
        &self,
        sweep: &Sweep,
        below: Uuid,
        cutoffs: Cutoffs,
    ) -> Result<Option<Swept>> {
        let after = sweep.after.map_or(Uuid::nil(), row::uuid);
        let Some(day) = self.first_day(after, below, cutoffs).await? else { return Ok(None) };
        match self.drop_day(day, cutoffs).await {
            Ok(deleted) => {
                let next = Some(row::task_id(day.ids().end));
                Ok(deleted.map(|deleted| Swept { deleted, next }))
            }
            Err(fault) if is_in_the_way(&fault) => {
                tracing::debug!(%fault, table = day.table(), "a day cannot be dropped now");
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    /// The first day behind an id, if a sweep goes beyond it and no dead letter of it is kept.
    async fn first_day(&self, after: Uuid, below: Uuid, cutoffs: Cutoffs) -> Result<Option<Day>> {
        let mut client = self.pool.get().await?;
        let snapshot = Snapshot::take(&mut client).await?;
        let days = days::within(&snapshot, &(after..below)).await?;
        let Some(day) = days.first().copied() else { return Ok(None) };
        let ids = day.ids();
        if ids.start < after || ids.end > below {
            return Ok(None);
        }
        let kept = "/* sweep.kept */ SELECT FROM duly.dlq WHERE task >= $1 AND task < $2
            AND ($3::bigint IS NULL OR failed_at >= $3) LIMIT 1";
        let asked: [Parameter<'_>; 3] = [&ids.start, &ids.end, &cutoffs.failed];
        Ok(snapshot.query_opt(kept, &asked).await?.is_none().then_some(day))
    }

    /// Drops a day with everything about its tasks; how many there were. Nothing if one is kept.
    async fn drop_day(&self, day: Day, cutoffs: Cutoffs) -> Result<Option<u32>> {
        let (table, ids, passed) = (day.table(), day.ids(), Cutoffs::PASSED);
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await?;
        // Nobody changes a task of it from here on.
        let lock = format!("{SETTINGS}; LOCK TABLE {table} IN SHARE MODE");
        transaction.batch_execute(&lock).await?;
        let select = format!(
            "/* sweep.whole_day */ SELECT count(*), count(*) FILTER (WHERE {passed}) FROM {table}"
        );
        let counted = transaction.query_one(&select, &cutoffs.parameters()).await?;
        let (all, passed): (i64, i64) = (counted.try_get(0)?, counted.try_get(1)?);
        if passed < all {
            return Ok(None);
        }
        for statement in BESIDES_RANGE {
            transaction.execute(statement, &[&ids.start, &ids.end]).await?;
        }
        transaction.batch_execute(&format!("/* sweep.drop_day */ DROP TABLE {table}")).await?;
        transaction.commit().await?;
        Ok(Some(u32::try_from(all).unwrap_or(u32::MAX)))
    }
}

/// Whether others use the day, or it is too large, or another node was quicker.
fn is_in_the_way(fault: &Fault) -> bool {
    let Fault::Postgres(error) = fault else { return false };
    let codes = [
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::UNDEFINED_TABLE,
    ];
    error.code().is_some_and(|code| codes.contains(code))
}
