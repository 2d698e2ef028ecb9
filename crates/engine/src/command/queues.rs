//! Look at queues, and pause them.

use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{self, ListQueues, PauseQueue, QueueList, QueueState};

use crate::engine::Engine;
use crate::rates::Rate;

impl Engine {
    /// Some of a tenant's queues, by name.
    pub async fn queues(&self, page: ListQueues) -> store::Result<QueueList> {
        self.store().queues(page).await
    }

    /// One queue.
    pub async fn queue(
        &self,
        tenant: &TenantName,
        queue: &QueueName,
    ) -> store::Result<Option<QueueState>> {
        self.store().queue(tenant, queue).await
    }

    /// How much came and started in a queue of late.
    pub fn rate(&self, tenant: &TenantName, queue: &QueueName) -> Rate {
        self.rates().of(tenant, queue)
    }

    /// Starts nothing of a queue any more, also before its first task; what runs goes on. Nothing
    /// if too many queues are paused that no task was submitted to.
    pub async fn pause_queue(&self, order: PauseQueue) -> store::Result<Option<QueueState>> {
        let (tenant, queue) = (order.tenant.clone(), order.queue.clone());
        if !self.store().pause_queue(order).await? {
            return Ok(None);
        }
        self.queue(&tenant, &queue).await
    }

    /// Starts what waits in a queue again. Nothing if there is no such queue.
    pub async fn resume_queue(
        &self,
        tenant: &TenantName,
        queue: &QueueName,
    ) -> store::Result<Option<QueueState>> {
        if !self.store().resume_queue(tenant, queue).await? {
            return Ok(None);
        }
        // One without tasks is there only while it is paused.
        let found = self.queue(tenant, queue).await?;
        Ok(Some(found.unwrap_or_else(|| QueueState::empty(queue.clone()))))
    }
}
