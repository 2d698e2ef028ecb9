//! Hook `deleted`: ended tasks go with all rows about them, by their ids or as a whole day.

use deadpool_postgres::{GenericClient as _, Transaction};
use uuid::Uuid;

use super::leases::{Batches, end_batches};
use crate::postgres::days::Day;
use crate::postgres::error::Result;
use crate::postgres::partitions;
use crate::postgres::verb::Scope;

/// Other tables with rows about tasks, each with how they are deleted by id and by day. A table that holds
/// something about tasks has its line here, unless a row of it may outlive its task, as idempotency keys
/// may.
const OTHER_TABLES: [(&str, &str); 4] = [
    (
        "/* delete.dead_letters */ DELETE FROM duly.dlq WHERE task = ANY($1)",
        "/* drop_day.dead_letters */ DELETE FROM duly.dlq WHERE task >= $1 AND task < $2",
    ),
    (
        "/* delete.attempts */ DELETE FROM duly.attempt WHERE task = ANY($1)",
        "/* drop_day.attempts */ DELETE FROM duly.attempt WHERE task >= $1 AND task < $2",
    ),
    (
        "/* delete.progress */ DELETE FROM duly.progress WHERE task = ANY($1)",
        "/* drop_day.progress */ DELETE FROM duly.progress WHERE task >= $1 AND task < $2",
    ),
    (
        "/* delete.logs */ DELETE FROM duly.log WHERE task = ANY($1)",
        "/* drop_day.logs */ DELETE FROM duly.log WHERE task >= $1 AND task < $2",
    ),
];

/// Deletes tasks that have ended and are locked, in the order of their ids; answers how many.
pub(in crate::postgres) async fn delete_tasks(scope: &Scope<'_>, tasks: &[Uuid]) -> Result<u64> {
    if tasks.is_empty() {
        return Ok(0);
    }
    let delete = "/* delete */ DELETE FROM duly.task WHERE id = ANY($1) AND status IN (3, 4, 5)
        RETURNING CASE WHEN sequence < 0 THEN session END, ~sequence";
    let deleted = scope.query(delete, &[&tasks]).await?;
    assert_eq!(deleted.len(), tasks.len(), "locked tasks stay as they were read");
    // No worker will acknowledge leases that their handlers' transactions have ended.
    let mut batches = Batches::new();
    for row in &deleted {
        if let Some(session) = row.try_get(0)? {
            *batches.entry((session, row.try_get(1)?)).or_default() += 1;
        }
    }
    end_batches(scope, batches, true).await?;
    for (by_id, _) in OTHER_TABLES {
        scope.execute(by_id, &[&tasks]).await?;
    }
    Ok(deleted.len() as u64)
}

/// Drops the partition of a day, of which the caller knows that all tasks may go. The caller holds the
/// day's lock.
pub(in crate::postgres) async fn drop_day(transaction: &Transaction<'_>, day: Day) -> Result<()> {
    let ids = day.ids();
    for (_, by_day) in OTHER_TABLES {
        transaction.execute(by_day, &[&ids.start, &ids.end]).await?;
    }
    let drop = "/* sweep.drop_day */ SELECT duly.drop_day($1)";
    transaction.execute(drop, &[&partitions::day(day.start)]).await?;
    Ok(())
}
