//! What follows for other tasks and for workflows when tasks end or run again.

use uuid::Uuid;

use crate::postgres::error::Result;
use crate::postgres::range::Range;
use crate::postgres::verb::Scope;

/// Settles tasks that this transaction has ended and that are tied to others.
pub(super) async fn settle(scope: &mut Scope<'_>, tasks: &[Uuid]) -> Result<()> {
    if tasks.is_empty() {
        return Ok(());
    }
    let settle = "/* task.settle */ SELECT r.lane, r.rank, r.run_at
        FROM duly.settle_tasks($1, NULL, NULL, $2, true) s,
             unnest(s.lanes, s.ranks, s.run_ats) r(lane, rank, run_at)";
    for row in scope.query(settle, &[&tasks, &scope.now.millis()]).await? {
        let range = Range { lane: row.try_get(0)?, rank: row.try_get(1)? };
        scope.wakes.add(range, row.try_get(2)?);
    }
    Ok(())
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
