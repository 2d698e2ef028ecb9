//! Counting tasks, and orders for many.

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::limits::SCAN_ROWS;
use duly_core::ports::store::{
    Bulk, BulkStep, Controlled, CountTasks, DeleteTasks, Result, TaskCount,
};
use rusqlite::Connection;

use super::dead_letters::{TASKS, needs_task};
use super::filter::{self, FITS};
use super::{SqliteStore, error, list};

/// What counting needs to know beside the verdict on a task: whether it is the system's own.
const COUNTED: [&str; 2] = ["lane.queue GLOB 'duly.*', 1", "lane.queue GLOB 'duly.*', 1"];
/// The same where only tasks count of which an attempt has failed: how many were charged too. None
/// was of a task that failed because its workers died.
const TRIED: [&str; 2] = [
    "lane.queue GLOB 'duly.*', task.charged",
    "lane.queue GLOB 'duly.*', coalesce((SELECT charged FROM task WHERE task.id = dlq.task), 0)",
];

#[async_trait]
impl Bulk for SqliteStore {
    async fn count(&self, which: CountTasks) -> Result<TaskCount> {
        self.readers.query(move |connection| count(connection, &which)).await
    }

    async fn delete(&self, order: DeleteTasks) -> Result<Vec<Controlled>> {
        self.ask(order).await
    }

    async fn carry_out(&self, step: BulkStep) -> Result<Option<Vec<Controlled>>> {
        self.ask(step).await
    }
}

fn count(connection: &Connection, which: &CountTasks) -> error::Result<TaskCount> {
    let CountTasks { tenant, filter, retried, before } = which;
    let mut found = TaskCount { count: 0, next_before: None };
    if !filter::has_lane(connection, tenant, filter)? {
        return Ok(found);
    }
    let columns = if *retried { TRIED } else { COUNTED };
    let mut statement = list::rows(connection, tenant, filter, *before, columns)?;
    let most = if *retried || needs_task(filter) { TASKS } else { SCAN_ROWS };
    let (mut rows, mut looked, mut last) = (statement.raw_query(), 0, None);
    while let Some(row) = rows.next()? {
        if looked == most {
            found.next_before = last;
            break;
        }
        looked += 1;
        let fits = row.get::<_, i64>(1)? == FITS && !row.get::<_, bool>(2)?;
        found.count += u64::from(fits && row.get::<_, i64>(3)? > 0);
        last = Some(TaskId::from_bytes(row.get(0)?));
    }
    Ok(found)
}
