//! List queues, and pause them.

use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{self, ListQueues, PauseQueue, QueueList, QueueState};

use crate::engine::Engine;
use crate::rates::Rate;
use crate::samplers::SampleFeed;

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

    /// How many tasks this node submitted and started in a queue during the last minute.
    pub fn rate(&self, tenant: &TenantName, queue: &QueueName) -> Rate {
        self.rates().of(tenant, queue)
    }

    /// Figures of a tenant's queues, once a second.
    pub fn samples(&self, tenant: &TenantName) -> SampleFeed {
        self.samplers().join(tenant)
    }

    /// Pauses a queue, also before its first task: no task of it starts; running tasks go on.
    /// `None` if too many queues without tasks are paused.
    pub async fn pause_queue(&self, order: PauseQueue) -> store::Result<Option<QueueState>> {
        let (tenant, queue) = (order.tenant.clone(), order.queue.clone());
        if !self.store().pause_queue(order).await? {
            return Ok(None);
        }
        self.queue(&tenant, &queue).await
    }

    /// Ends the pause of a queue. `None` if there is no such queue.
    pub async fn resume_queue(
        &self,
        tenant: &TenantName,
        queue: &QueueName,
    ) -> store::Result<Option<QueueState>> {
        if !self.store().resume_queue(tenant, queue).await? {
            return Ok(None);
        }
        // A queue without tasks exists only while it is paused.
        let found = self.queue(tenant, queue).await?;
        Ok(Some(found.unwrap_or_else(|| QueueState::empty(queue.clone()))))
    }
}
