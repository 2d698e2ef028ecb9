//! Reading what is kept of tries that failed.

use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::task::Attempt;

use super::error::Result;
use super::snapshot::Snapshot;
use super::{PostgresStore, reports, row};

/// The failed and lost attempts of a task; nothing if it is absent.
pub(super) async fn attempts(
    store: &PostgresStore,
    tenant: &TenantName,
    id: TaskId,
) -> Result<Option<Vec<Attempt>>> {
    let id = row::uuid(id);
    let mut client = store.pool.get().await?;
    let snapshot = Snapshot::take(&mut client).await?;
    let known = "/* attempts.task */ SELECT 1 FROM duly.task
        JOIN duly.lane ON lane.id = task.lane WHERE task.id = $1 AND lane.tenant = $2";
    if snapshot.query_opt(known, &[&id, &tenant.as_str()]).await?.is_none() {
        return Ok(None);
    }
    let mut logs = reports::excerpts(&snapshot, id).await?;
    let select = "/* attempts */ SELECT attempt.run, attempt.attempt, attempt.epoch,
            attempt.started_at, attempt.ended_at, session.name, attempt.error
        FROM duly.attempt LEFT JOIN duly.session ON session.id = attempt.session
        WHERE attempt.task = $1 ORDER BY attempt.epoch";
    let mut attempts = Vec::new();
    for row in snapshot.query(select, &[&id]).await? {
        let count = |index, column| row::count("attempt", column, id, row.try_get(index)?);
        let error = row::decode_failure("attempt", row.try_get(6)?, id);
        attempts.push(Attempt {
            run: count(0, "run")?,
            attempt: count(1, "attempt")?,
            epoch: count(2, "epoch")?,
            started_at: row::instant(row.try_get(3)?),
            ended_at: row::instant(row.try_get(4)?),
            worker: row.try_get(5)?,
            error: error.unwrap_or_else(|| Err(row::corrupt("attempt", "error", id)))?,
            log: logs.remove(&row.try_get(2)?),
        });
    }
    Ok(Some(attempts))
}
