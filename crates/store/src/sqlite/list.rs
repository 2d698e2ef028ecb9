//! Lists of tasks: the primary key from the newest id down, within the ids that `since` and
//! `until` leave. What asks for FAILED tasks alone reads the dead letters by id instead, since
//! failed tasks are few among many; and where those that wait or run are few, they are looked up
//! one by one.

mod few;

use std::collections::BTreeSet;

use duly_core::filter::Filter;
use duly_core::id::TaskId;
use duly_core::limits::SCAN_ROWS;
use duly_core::name::TenantName;
use duly_core::ports::store::{ListTasks, TaskList};
use duly_core::state::Status;
use rusqlite::{CachedStatement, Connection, named_params};

use super::error::Result;
use super::filter::{self, DEAD_VERDICT, TASK_VERDICT, Verdicts};
use super::page::{self, Bounds, Looked, Page};

/// All tasks of the file, newest id first. No condition is left to the planner: one on the lane
/// would let it read lane by lane and sort what it finds.
fn all(also: &str) -> String {
    format!(
        "/* task.list */ SELECT task.id, {TASK_VERDICT}, {also}
         FROM task LEFT JOIN lane ON lane.id = task.lane
         WHERE task.id >= :from AND task.id < :below ORDER BY task.id DESC"
    )
}

/// Those of one workflow, newest id first.
fn of_workflow(also: &str) -> String {
    format!(
        "/* task.list.workflow */ SELECT task.id, {TASK_VERDICT}, {also}
         FROM member JOIN task ON task.id = member.task LEFT JOIN lane ON lane.id = task.lane
         WHERE member.workflow = :workflow AND member.task >= :from AND member.task < :below
         ORDER BY member.task DESC"
    )
}

/// The failed ones, newest id first.
fn failed(also: &str) -> String {
    format!(
        "/* task.list.failed */ SELECT dlq.task, {DEAD_VERDICT}, {also}
         FROM dlq INDEXED BY dlq_task LEFT JOIN lane ON lane.id = dlq.lane
         WHERE dlq.task >= :from AND dlq.task < :below ORDER BY dlq.task DESC"
    )
}

pub(super) fn list(connection: &Connection, page: &ListTasks) -> Result<TaskList> {
    let found = find(connection, page)?;
    let Page { tasks, next_before, scanned, partial } = found;
    Ok(TaskList { tasks, next_before, scanned, partial })
}

fn find(connection: &Connection, page: &ListTasks) -> Result<Page<TaskId>> {
    // Several statements that read one moment.
    let connection = &*connection.unchecked_transaction()?;
    let ListTasks { tenant, filter, before, limit } = page;
    if !filter::has_lane(connection, tenant, filter)? {
        return Ok(Page::empty());
    }
    let ids = filter.ids();
    let below = before.map_or(ids.end, |before| before.min(ids.end));
    let bounds = Bounds { tasks: *limit, rows: SCAN_ROWS };
    if filter.workflow.is_none()
        && let Some(few) = few::newest_first(connection, page, &(ids.start..below))?
    {
        let (mut few, mut verdicts) = (few.into_iter(), Verdicts::new(connection, tenant, filter)?);
        return page::fill(connection, tenant, bounds, || {
            let Some(task) = few.next() else { return Ok(None) };
            Ok(Some(Looked { task, verdict: verdicts.on(task)?, place: task }))
        });
    }
    let mut statement = rows(connection, tenant, filter, *before, ["0"; 2])?;
    let mut rows = statement.raw_query();
    page::fill(connection, tenant, bounds, || {
        let Some(row) = rows.next()? else { return Ok(None) };
        let task = TaskId::from_bytes(row.get(0)?);
        Ok(Some(Looked { task, verdict: row.get(1)?, place: task }))
    })
}

/// Tasks and the verdict on each, newest id first, and perhaps some that a filter cannot leave; and
/// what else is asked for of tasks, or of dead letters where they are all that can be left.
pub(super) fn rows<'a>(
    connection: &'a Connection,
    tenant: &TenantName,
    filter: &Filter,
    before: Option<TaskId>,
    [of_tasks, of_failed]: [&str; 2],
) -> Result<CachedStatement<'a>> {
    let ids = filter.ids();
    let below = before.map_or(ids.end, |before| before.min(ids.end));
    let only_failed = filter.statuses == BTreeSet::from([Status::Failed]);
    let text = match filter.workflow {
        Some(_) => of_workflow(of_tasks),
        None if only_failed => failed(of_failed),
        None => all(of_tasks),
    };
    let mut statement = connection.prepare_cached(&text)?;
    filter::bind(&mut statement, tenant, filter)?;
    let range = named_params! { ":from": ids.start.as_bytes(), ":below": below.as_bytes() };
    filter::put(&mut statement, range)?;
    Ok(statement)
}

#[cfg(test)]
mod tests;
