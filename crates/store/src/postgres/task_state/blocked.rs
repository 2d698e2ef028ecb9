//! Rows of the blocked table, which exist exactly while their tasks are BLOCKED.

use uuid::Uuid;

use super::state::{TaskState, each};
use crate::postgres::error::Result;
use crate::postgres::range::LaneId;
use crate::postgres::verb::Scope;

#[derive(Clone, Copy, Debug)]
pub(super) struct BlockedRow {
    pub(super) task: Uuid,
    pub(super) lane: LaneId,
    /// Edges to the task that are not satisfied.
    pub(super) open: i32,
    /// How long it waits once it is released; `None` if it has a run time.
    pub(super) delay_ms: Option<i64>,
}

impl BlockedRow {
    pub(super) fn of(state: &TaskState, open: i32, delay_ms: Option<i64>) -> Self {
        Self { task: state.id, lane: state.lane, open, delay_ms }
    }
}

pub(super) async fn add(scope: &Scope<'_>, rows: &[BlockedRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let insert = "/* blocked.add */ INSERT INTO duly.blocked (task, lane, open, delay_ms)
        SELECT * FROM unnest($1::uuid[], $2::integer[], $3::integer[], $4::bigint[])";
    let (tasks, lanes) = (each(rows, |it| it.task), each(rows, |it| it.lane));
    let (open, delays) = (each(rows, |it| it.open), each(rows, |it| it.delay_ms));
    scope.execute(insert, &[&tasks, &lanes, &open, &delays]).await?;
    Ok(())
}

/// The rows are those of tasks that this transaction has locked.
pub(super) async fn remove(scope: &Scope<'_>, rows: &[BlockedRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let delete = "/* blocked.remove */ DELETE FROM duly.blocked b
        USING unnest($1::integer[], $2::uuid[]) r(lane, task)
        WHERE b.lane = r.lane AND b.task = r.task";
    let (lanes, tasks) = (each(rows, |it| it.lane), each(rows, |it| it.task));
    scope.execute(delete, &[&lanes, &tasks]).await?;
    Ok(())
}

/// How many edges are not satisfied to tasks that are BLOCKED and locked.
pub(in crate::postgres) async fn count_edges(
    scope: &Scope<'_>,
    rows: &[(&TaskState, i32)],
) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let update = "/* blocked.count */ UPDATE duly.blocked b SET open = r.open
        FROM unnest($1::integer[], $2::uuid[], $3::integer[]) r(lane, task, open)
        WHERE b.lane = r.lane AND b.task = r.task";
    let (lanes, tasks) = (each(rows, |(it, _)| it.lane), each(rows, |(it, _)| it.id));
    scope.execute(update, &[&lanes, &tasks, &each(rows, |(_, open)| *open)]).await?;
    Ok(())
}

/// How long a BLOCKED task waits once it is released.
pub(in crate::postgres) async fn set_delay(
    scope: &Scope<'_>,
    state: &TaskState,
    delay_ms: Option<i64>,
) -> Result<()> {
    let update = "/* blocked.delay */ UPDATE duly.blocked SET delay_ms = $3
        WHERE lane = $1 AND task = $2";
    scope.execute(update, &[&state.lane, &state.id, &delay_ms]).await?;
    Ok(())
}
