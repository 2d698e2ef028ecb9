//! Rows of the due table, which exist exactly while their tasks are PENDING.

use uuid::Uuid;

use super::state::{TaskState, each};
use crate::postgres::error::Result;
use crate::postgres::range::Range;
use crate::postgres::verb::Scope;

#[derive(Clone, Copy, Debug)]
pub(super) struct DueRow {
    range: Range,
    run_at: i64,
    task: Uuid,
}

impl DueRow {
    pub(super) fn of(state: &TaskState) -> Self {
        Self { range: state.range(), run_at: state.run_at, task: state.id }
    }
}

/// A row that a claim is about to take is left to it: the claim finds that the task does not wait.
pub(super) async fn remove(scope: &mut Scope<'_>, rows: &[DueRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let delete = "/* due.remove */ DELETE FROM duly.due WHERE ctid = ANY(ARRAY(
            SELECT d.ctid FROM unnest($1::integer[], $2::smallint[], $3::bigint[], $4::uuid[])
                       r(lane, rank, run_at, task),
                   LATERAL (SELECT w.ctid FROM duly.due w
                            WHERE w.lane = r.lane AND w.rank = r.rank
                              AND w.run_at = r.run_at AND w.task = r.task
                            FOR UPDATE SKIP LOCKED) d))";
    let (lanes, ranks, run_ats, tasks) = columns(rows);
    scope.execute(delete, &[&lanes, &ranks, &run_ats, &tasks]).await?;
    rows.iter().for_each(|row| scope.wakes.remove(row.range));
    Ok(())
}

pub(super) async fn add(scope: &mut Scope<'_>, rows: &[DueRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    // The row may still be there because a claim skipped it, and another claim may be about to delete
    // it: the update waits for that claim, and then inserts the row.
    let insert = "/* due.add */ INSERT INTO duly.due (lane, rank, run_at, task)
        SELECT * FROM unnest($1::integer[], $2::smallint[], $3::bigint[], $4::uuid[])
        ON CONFLICT (lane, rank, run_at, task) DO UPDATE SET task = excluded.task";
    let (lanes, ranks, run_ats, tasks) = columns(rows);
    scope.execute(insert, &[&lanes, &ranks, &run_ats, &tasks]).await?;
    rows.iter().for_each(|row| scope.wakes.add(row.range, row.run_at));
    Ok(())
}

type Columns = (Vec<i32>, Vec<i16>, Vec<i64>, Vec<Uuid>);

/// In the order of tasks, in which all transactions lock them.
fn columns(rows: &[DueRow]) -> Columns {
    let mut rows = rows.to_vec();
    rows.sort_unstable_by_key(|it| it.task);
    (
        each(&rows, |it| it.range.lane),
        each(&rows, |it| it.range.rank),
        each(&rows, |it| it.run_at),
        each(&rows, |it| it.task),
    )
}
