//! Reading one task.

use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::task::Task;

use super::PostgresStore;
use super::error::Result;
use super::row;

impl PostgresStore {
    /// One task of a tenant.
    pub(super) async fn read(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Task>> {
        let (columns, tables) = (row::TASK_COLUMNS, row::TASK_TABLES);
        let select = format!(
            "/* task.get */ SELECT {columns} FROM {tables} WHERE task.id = $1 AND lane.tenant = $2"
        );
        let client = self.pool.get().await?;
        let statement = client.prepare_cached(&select).await?;
        let found = client.query_opt(&statement, &[&row::uuid(id), &tenant.as_str()]).await?;
        found.as_ref().map(row::task).transpose()
    }
}
