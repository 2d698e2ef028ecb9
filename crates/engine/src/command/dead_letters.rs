//! List dead letters and count them by error.

use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::ports::store::{self, DeadGroups, DeadList, GroupDead, ListDead};
use duly_core::task::Attempt;
use duly_core::time::Timestamp;

use crate::engine::Engine;

impl Engine {
    /// The failed and lost attempts of a task, oldest first.
    pub async fn attempts(
        &self,
        tenant: &TenantName,
        id: TaskId,
    ) -> store::Result<Option<Vec<Attempt>>> {
        self.store().attempts(tenant, id).await
    }

    /// One page of dead letters, latest failure first.
    pub async fn dead_letters(&self, page: ListDead) -> store::Result<DeadList> {
        self.store().dead_letters(page).await
    }

    /// Dead letters by queue, type and error.
    pub async fn dead_groups(&self, which: GroupDead) -> store::Result<DeadGroups> {
        self.store().dead_groups(which).await
    }

    /// The store's clock, for filters with relative times.
    pub async fn now(&self) -> store::Result<Timestamp> {
        self.store().now().await
    }
}
