//! Dropping the partition of a day of which nothing is kept: far cheaper than deleting its rows.

use deadpool_postgres::GenericClient;
use duly_core::event::EventKind;
use tokio_postgres::error::SqlState;

use super::Cutoffs;
use crate::postgres::PostgresStore;
use crate::postgres::days::Day;
use crate::postgres::error::{Fault, Result};
use crate::postgres::filter::Parameter;
use crate::postgres::partitions;
use crate::postgres::snapshot::Snapshot;
use crate::postgres::task_state::deleted;

/// Rows of a day are read as they lie; a day that takes longer than any statement may is deleted page
/// by page. For as long its tasks cannot be replayed. Locks of the table stop everybody, since a plan
/// for any day locks them all, so that they must come about at once.
const SETTINGS: &str = "SET LOCAL enable_seqscan = on; SET LOCAL lock_timeout = '200ms'";

impl PostgresStore {
    /// Drops a day, if all of it may go and no transaction uses it; answers how many tasks it had.
    pub(super) async fn drop_day(&self, day: Day, cutoffs: &Cutoffs) -> Result<Option<u32>> {
        let dropped = match self.keeps(day, cutoffs).await {
            Ok(true) => return Ok(None),
            Ok(false) => self.try_to_drop(day, cutoffs).await,
            Err(fault) => Err(fault),
        };
        match dropped {
            Err(fault) if is_in_the_way(&fault) => {
                tracing::debug!(%fault, table = day.table(), "a day cannot be dropped now");
                Ok(None)
            }
            dropped => dropped,
        }
    }

    /// Whether a task of this day stays: mostly that is soon seen, and blocks nothing. Dead letters are
    /// read first, by their index. A day whose deleted tasks a sink wants to be told of goes page by page.
    async fn keeps(&self, day: Day, cutoffs: &Cutoffs) -> Result<bool> {
        let mut client = self.pool.get().await?;
        let snapshot = Snapshot::take(&mut client).await?;
        if tells_of_deleted(snapshot.client()).await? {
            return Ok(true);
        }
        let passed = Cutoffs::DEAD_PASSED;
        let kept = format!(
            "/* sweep.kept */ SELECT FROM duly.dlq WHERE task >= $8 AND task < $9
             AND ({passed}) IS NOT TRUE LIMIT 1"
        );
        let ids = day.ids();
        let mut asked = cutoffs.parameters().to_vec();
        asked.extend([&ids.start as Parameter<'_>, &ids.end]);
        if snapshot.query_opt(&kept, &asked).await?.is_some() {
            return Ok(true);
        }
        if snapshot.query_opt(deleted::IS_NEEDED, &[&ids.start, &ids.end]).await?.is_some() {
            return Ok(true);
        }
        let (table, passed) = (day.table(), Cutoffs::PASSED);
        snapshot.query("SELECT set_config('enable_seqscan', 'on', true)", &[]).await?;
        let kept = format!(
            "/* sweep.kept_any */ SELECT FROM {table} WHERE ({passed}) IS NOT TRUE LIMIT 1"
        );
        Ok(snapshot.query_opt(&kept, &cutoffs.parameters()).await?.is_some())
    }

    /// Drops a day with everything about its tasks; `None` if one of them is kept. Transactions that
    /// would store or replay one wait for it, and it waits for those that have begun to: from then on
    /// tasks of the day can only end.
    async fn try_to_drop(&self, day: Day, cutoffs: &Cutoffs) -> Result<Option<u32>> {
        let (table, passed) = (day.table(), Cutoffs::PASSED);
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await?;
        transaction.batch_execute(SETTINGS).await?;
        let number = partitions::day(day.start);
        let hold = "/* sweep.hold_day */ SELECT pg_try_advisory_xact_lock(duly.day_locks(), $1)";
        if !transaction.query_one(hold, &[&number]).await?.try_get::<_, bool>(0)? {
            return Ok(None);
        }
        let await_others =
            format!("SAVEPOINT free; LOCK TABLE {table} IN SHARE MODE; ROLLBACK TO SAVEPOINT free");
        transaction.batch_execute(&await_others).await?;
        let select = format!(
            "/* sweep.whole_day */ SELECT count(*), count(*) FILTER (WHERE {passed}) FROM {table}"
        );
        let counted = transaction.query_one(&select, &cutoffs.parameters()).await?;
        let (all, passed): (i64, i64) = (counted.try_get(0)?, counted.try_get(1)?);
        if passed < all {
            return Ok(None);
        }
        let ids = day.ids();
        let needed = transaction.query_opt(deleted::IS_NEEDED, &[&ids.start, &ids.end]).await?;
        if needed.is_some() {
            return Ok(None);
        }
        if tells_of_deleted(&transaction).await? {
            return Ok(None);
        }
        deleted::drop_day(&transaction, day).await?;
        transaction.commit().await?;
        Ok(Some(u32::try_from(all).unwrap_or(u32::MAX)))
    }
}

/// Whether a sink wants to be told of deleted tasks.
async fn tells_of_deleted(client: &impl GenericClient) -> Result<bool> {
    let select = "/* sweep.tells */ SELECT FROM duly.wanted_kinds WHERE kinds & $1 <> 0";
    let bit = 1 << EventKind::TaskDeleted.number();
    Ok(client.query_opt(select, &[&bit]).await?.is_some())
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
