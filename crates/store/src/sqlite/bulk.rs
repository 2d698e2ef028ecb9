//! Counting tasks, and orders for many.

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::limits::COUNT_SCAN_ROWS;
use duly_core::ports::store::{
    Bulk, BulkStep, Controlled, CountTasks, DeleteTasks, Result, TaskCount,
};
use rusqlite::Connection;

use super::filter::{self, FITS};
use super::{SqliteStore, error, list};

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
    let CountTasks { tenant, filter, before } = which;
    let mut found = TaskCount { count: 0, next_before: None };
    if !filter::has_lane(connection, tenant, filter)? {
        return Ok(found);
    }
    let mut statement = list::rows(connection, tenant, filter, *before)?;
    let (mut rows, mut looked, mut last) = (statement.raw_query(), 0, None);
    while let Some(row) = rows.next()? {
        if looked == COUNT_SCAN_ROWS {
            found.next_before = last;
            break;
        }
        looked += 1;
        found.count += u64::from(row.get::<_, i64>(1)? == FITS);
        last = Some(TaskId::from_bytes(row.get(0)?));
    }
    Ok(found)
}
