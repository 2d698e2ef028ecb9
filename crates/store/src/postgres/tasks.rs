//! Submitting and reading tasks.

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::limits::STORE_BATCH;
use duly_core::name::TenantName;
use duly_core::ports::store::{
    self, Error, Exchange, Exchanged, ExtendLeases, Extended, Leases, ListTasks, Submit, Submitted,
    TaskList, Tasks,
};
use duly_core::task::{Attempt, Task};

use super::error::Result;
use super::links::{self, Linked};
use super::{PostgresStore, attempts, list, row};

#[async_trait]
impl Tasks for PostgresStore {
    async fn submit(&self, batch: Submit) -> store::Result<Vec<Submitted>> {
        if batch.tasks.len() > STORE_BATCH {
            return Err(Error::TooLarge { what: "a batch of tasks", limit: STORE_BATCH });
        }
        Ok(self.store(&batch).await?)
    }

    async fn get(&self, tenant: &TenantName, id: TaskId) -> store::Result<Option<Task>> {
        Ok(self.read(tenant, id).await?)
    }

    async fn list(&self, page: ListTasks) -> store::Result<TaskList> {
        Ok(list::list(self, page).await?)
    }

    async fn attempts(
        &self,
        tenant: &TenantName,
        id: TaskId,
    ) -> store::Result<Option<Vec<Attempt>>> {
        Ok(attempts::attempts(self, tenant, id).await?)
    }
}

#[async_trait]
impl Leases for PostgresStore {
    async fn exchange(&self, exchange: Exchange) -> store::Result<Exchanged> {
        let claimed = exchange.claim.as_ref().map_or(0, |claim| claim.max);
        if exchange.finishes.len() > STORE_BATCH || claimed > STORE_BATCH {
            return Err(Error::TooLarge { what: "a batch of leases", limit: STORE_BATCH });
        }
        Ok(self.finish_and_claim(&exchange).await?)
    }

    async fn extend(&self, order: ExtendLeases) -> store::Result<Vec<Extended>> {
        Ok(self.run(&order).await?)
    }
}

impl PostgresStore {
    /// One task of a tenant.
    async fn read(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Task>> {
        let mut client = self.pool.get().await?;
        let snapshot = self.pool.snapshot(&mut client, tenant).await?;
        let found = snapshot.query_opt(&one(), &[&row::uuid(id), &tenant.as_str()]).await?;
        let Some(found) = found else { return Ok(None) };
        let mut tasks = [row::task(&found)?];
        let linked = Linked::read(&found)?;
        if linked.is_shown() {
            links::fill(snapshot.client(), &mut tasks, &[linked]).await?;
        }
        let [task] = tasks;
        Ok(Some(task))
    }
}

/// The statement that reads one task of a tenant.
pub(super) fn one() -> String {
    let (columns, tables) = (row::TASK_COLUMNS, row::TASK_TABLES);
    format!("/* task.get */ SELECT {columns} FROM {tables} WHERE task.id = $1 AND lane.tenant = $2")
}
