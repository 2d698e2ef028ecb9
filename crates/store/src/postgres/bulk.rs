//! Counting tasks, and orders for many.

use async_trait::async_trait;
use duly_core::limits::SCAN_ROWS;
use duly_core::ports::store::{
    Bulk, BulkStep, Controlled, CountTasks, DeleteTasks, Result, TaskCount,
};

use super::filter::{Terms, Verdict};
use super::list::Newest;
use super::page::{Portions, Rows as _};
use super::snapshot::Snapshot;
use super::{PostgresStore, error, row};

#[async_trait]
impl Bulk for PostgresStore {
    async fn count(&self, which: CountTasks) -> Result<TaskCount> {
        let mut client = self.pool.get().await?;
        let snapshot = self.pool.snapshot(&mut client, &which.tenant).await?;
        Ok(count(&snapshot, &which).await?)
    }

    async fn delete(&self, order: DeleteTasks) -> Result<Vec<Controlled>> {
        Ok(self.run(&order).await?)
    }

    async fn carry_out(&self, step: BulkStep) -> Result<Option<Vec<Controlled>>> {
        Ok(self.run(&step).await?)
    }
}

async fn count(snapshot: &Snapshot<'_>, which: &CountTasks) -> error::Result<TaskCount> {
    let CountTasks { tenant, filter, retried, before } = which;
    let mut found = TaskCount { count: 0, next_before: None };
    let terms = Terms::new(tenant, filter);
    let Some(mut rows) = Newest::of(snapshot, &terms, filter, *before).await? else {
        return Ok(found);
    };
    let (mut looked, mut last) = (0, None);
    for portion in Portions::new(2_500, SCAN_ROWS) {
        let portion = rows.next(portion).await?;
        if portion.is_empty() {
            break;
        }
        for row in portion {
            if looked == SCAN_ROWS {
                found.next_before = last;
                break;
            }
            looked += 1;
            if let Verdict::Fits { tried, system, .. } = row.verdict {
                found.count += u64::from(!system && (tried || !retried));
            }
            last = Some(row::task_id(row.task));
        }
    }
    Ok(found)
}
