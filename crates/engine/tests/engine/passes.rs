//! What the watched store passes on as it is.

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{
    ListQueues, PauseQueue, Place, QueueList, QueueState, Queues, Result,
};

use crate::world::Watched;

#[async_trait]
impl Queues for Watched {
    async fn queues(&self, page: ListQueues) -> Result<QueueList> {
        self.store.queues(page).await
    }

    async fn queue(&self, tenant: &TenantName, queue: &QueueName) -> Result<Option<QueueState>> {
        self.store.queue(tenant, queue).await
    }

    async fn pause_queue(&self, order: PauseQueue) -> Result<bool> {
        self.store.pause_queue(order).await
    }

    async fn resume_queue(&self, tenant: &TenantName, queue: &QueueName) -> Result<bool> {
        self.store.resume_queue(tenant, queue).await
    }

    async fn place(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Place>> {
        self.store.place(tenant, id).await
    }
}
