//! Reading what is kept of tries that have ended.

use duly_core::id::TaskId;
use duly_core::limits::ATTEMPTS;
use duly_core::name::TenantName;
use duly_core::task::Attempt;

use super::error::Result;
use super::{PostgresStore, reports, row, tasks};

/// The attempts of a task that have ended; nothing if it is absent.
pub(super) async fn attempts(
    store: &PostgresStore,
    tenant: &TenantName,
    id: TaskId,
) -> Result<Option<Vec<Attempt>>> {
    let id = row::uuid(id);
    let mut client = store.pool.get().await?;
    let snapshot = store.pool.snapshot(&mut client, tenant).await?;
    let found = snapshot.query_opt(&tasks::one(), &[&id, &tenant.as_str()]).await?;
    let Some(found) = found else { return Ok(None) };
    let mut logs = reports::excerpts(&snapshot, id).await?;
    let select = "/* attempts */ SELECT attempt.run, attempt.attempt, attempt.epoch,
            attempt.started_at, attempt.ended_at, session.name, attempt.error
        FROM duly.attempt LEFT JOIN duly.session ON session.id = attempt.session
        WHERE attempt.task = $1 ORDER BY attempt.epoch";
    let mut attempts = Vec::new();
    for row in snapshot.query(select, &[&id]).await? {
        let count = |index, column| row::count("attempt", column, id, row.try_get(index)?);
        let error: &str = row.try_get(6)?;
        let error = Some(error).filter(|text| *text != row::NO_FAILURE);
        attempts.push(Attempt {
            run: count(0, "run")?,
            attempt: count(1, "attempt")?,
            epoch: count(2, "epoch")?,
            started_at: row::instant(row.try_get(3)?),
            ended_at: row::instant(row.try_get(4)?),
            worker: row.try_get(5)?,
            error: row::decode_failure("attempt", error, id).transpose()?,
            log: logs.remove(&row.try_get(2)?),
        });
    }
    if let Some(success) = row::task(&found)?.success() {
        let log = logs.remove(&row::encode_count(success.epoch));
        attempts.push(Attempt { log, ..success });
    }
    attempts.drain(..attempts.len().saturating_sub(ATTEMPTS));
    Ok(Some(attempts))
}
