//! Queries on the dead-letter queue.

mod groups;

use duly_core::filter::Filter;
use duly_core::id::TaskId;
use duly_core::limits::SCAN_ROWS;
use duly_core::ports::store::{DeadList, DeadPosition, ListDead};
use duly_core::state::Status;
use duly_core::time::Timestamp;
use rusqlite::{Connection, named_params};

use super::error::Result;
use super::filter::{self, DEAD_VERDICT};
use super::page::{self, Bounds, Looked, Page};

pub(super) use self::groups::groups;
#[cfg(test)]
pub(super) use self::groups::last;

/// All dead letters of the file, last failure first. One upper bound and not two (a cursor and a
/// time), since the planner would pick one of them, perhaps that of the first page.
pub(super) fn newest() -> String {
    format!(
        "/* dlq.list */ SELECT dlq.task, {DEAD_VERDICT}, failed_at
         FROM dlq LEFT JOIN lane ON lane.id = dlq.lane
         WHERE failed_at >= :since AND (failed_at, dlq.task) < (:failed_at, :task)
         ORDER BY failed_at DESC, dlq.task DESC"
    )
}

pub(super) fn list(connection: &Connection, page: &ListDead) -> Result<DeadList> {
    let Page { tasks, next_before, scanned, partial } = find(connection, page)?;
    Ok(DeadList { tasks, next_before, scanned, partial })
}

fn find(connection: &Connection, page: &ListDead) -> Result<Page<DeadPosition>> {
    let ListDead { tenant, filter, before, limit } = page;
    if !filter.allows(Status::Failed) || !filter::has_lane(connection, tenant, filter)? {
        return Ok(Page::empty());
    }
    let end = |until| DeadPosition { failed_at: until, task: TaskId::from_bytes([0; 16]) };
    let end = filter.until.map(end);
    let below = [*before, end].into_iter().flatten().min();
    let mut statement = connection.prepare_cached(&newest())?;
    filter::bind(&mut statement, tenant, filter)?;
    let range = named_params! {
        ":since": filter.since.map_or(i64::MIN, Timestamp::millis),
        ":failed_at": below.map_or(i64::MAX, |below| below.failed_at.millis()),
        ":task": below.map_or([0xff; 16], |below| *below.task.as_bytes()),
    };
    filter::put(&mut statement, range)?;
    let mut rows = statement.raw_query();
    let bounds = Bounds { tasks: *limit, rows: if needs_task(filter) { TASKS } else { SCAN_ROWS } };
    page::fill(connection, tenant, bounds, || {
        let Some(row) = rows.next()? else { return Ok(None) };
        let (task, failed_at) = (TaskId::from_bytes(row.get(0)?), row.get(2)?);
        let place = DeadPosition { failed_at: Timestamp::clamped(failed_at), task };
        Ok(Some(Looked { task, verdict: row.get(1)?, place }))
    })
}

/// Whether a term is about what only the task's own row says.
pub(super) fn needs_task(filter: &Filter) -> bool {
    let Filter { labels, error, worker, workflow, .. } = filter;
    !labels.is_empty() || error.is_some() || worker.is_some() || workflow.is_some()
}

/// Dead letters that are looked at where a term needs the task: it is in another table and costs several
/// times as much.
pub(super) const TASKS: u32 = SCAN_ROWS / 2;

#[cfg(test)]
mod tests;
