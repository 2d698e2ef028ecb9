//! What the watched store passes on as it is.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{
    Bulk, BulkStep, Controlled, CountTasks, DeleteTasks, Error, ListQueues, PauseQueue, Place,
    QueueList, QueueState, Queues, Result, TaskCount,
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

#[async_trait]
impl Bulk for Watched {
    async fn count(&self, which: CountTasks) -> Result<TaskCount> {
        self.store.count(which).await
    }

    async fn delete(&self, order: DeleteTasks) -> Result<Vec<Controlled>> {
        self.store.delete(order).await
    }

    async fn carry_out(&self, step: BulkStep) -> Result<Option<Vec<Controlled>>> {
        let answer = self.store.carry_out(step).await;
        let left = |left: usize| left.checked_sub(1);
        match self.lost_steps.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left) {
            Ok(_) => Err(Error::Unavailable { reason: "the answer was lost".to_owned() }),
            Err(_) => answer,
        }
    }
}
