//! What follows for other tasks and for workflows when tasks end or run again.

use duly_core::event::EventKind;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::postgres::error::Result;
use crate::postgres::outbox::ToldTask;
use crate::postgres::range::Range;
use crate::postgres::verb::Scope;

/// Settles tasks that this transaction has ended and that are tied to others.
pub(super) async fn settle(scope: &mut Scope<'_>, tasks: &[Uuid]) -> Result<()> {
    if tasks.is_empty() {
        return Ok(());
    }
    let settle =
        "/* task.settle */ SELECT lanes, ranks, run_ats, tasks, task_lanes, runs, epochs, others
        FROM duly.settle_tasks($1, NULL, NULL, $2, true, $3)";
    let tells =
        scope.told.wants(EventKind::TaskUnblocked) || scope.told.wants(EventKind::WorkflowEnded);
    let rows = scope.query(settle, &[&tasks, &scope.now.millis(), &tells]).await?;
    let Some(settled) = rows.first() else { return Ok(()) };
    if let Some(lanes) = settled.try_get::<_, Option<Vec<i32>>>(0)? {
        let (ranks, run_ats): (Vec<i16>, Vec<i64>) = (settled.try_get(1)?, settled.try_get(2)?);
        for ((lane, rank), run_at) in lanes.into_iter().zip(ranks).zip(run_ats) {
            scope.wakes.add(Range { lane, rank }, run_at);
        }
    }
    let released = read_released(settled)?;
    scope.told.tell_all(released.into_iter().map(|it| (EventKind::TaskUnblocked, it)).collect());
    scope.told.emit_all(settled.try_get::<_, Option<Vec<String>>>(7)?.unwrap_or_default());
    Ok(())
}

fn read_released(settled: &Row) -> Result<Vec<ToldTask>> {
    let Some(ids) = settled.try_get::<_, Option<Vec<Uuid>>>(3)? else { return Ok(Vec::new()) };
    let [lanes, runs, epochs]: [Vec<i32>; 3] =
        [settled.try_get(4)?, settled.try_get(5)?, settled.try_get(6)?];
    let columns = ids.into_iter().zip(lanes).zip(runs).zip(epochs);
    Ok(columns.map(|(((id, lane), run), epoch)| ToldTask { id, lane, run, epoch }).collect())
}

/// Tasks of these workflows are open again, one for each time that a workflow is named.
pub(super) async fn reopen(scope: &Scope<'_>, mut workflows: Vec<Uuid>) -> Result<()> {
    if workflows.is_empty() {
        return Ok(());
    }
    workflows.sort_unstable();
    let lock = "/* workflow.lock */ SELECT FROM duly.workflow WHERE id = ANY($1)
        ORDER BY id FOR NO KEY UPDATE";
    scope.query(lock, &[&workflows]).await?;
    // One that had ended starts afresh. One that had not may be on its way to its end: what is open
    // again is then cancelled, too.
    let update = "/* workflow.reopen */ UPDATE duly.workflow w
        SET open = w.open + n.tasks, status = 0, finished_at = NULL,
            cancelled = CASE WHEN w.status = 0 THEN w.cancelled END,
            failing = w.failing AND w.status = 0,
            sweep = w.status = 0 AND (w.failing OR w.cancelled IS NOT NULL)
        FROM (SELECT u.id, count(*)::integer AS tasks FROM unnest($1::uuid[]) u(id) GROUP BY u.id) n
        WHERE w.id = n.id";
    scope.execute(update, &[&workflows]).await?;
    Ok(())
}
