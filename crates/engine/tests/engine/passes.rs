//! What the watched store passes on, mostly as it is.

#![expect(clippy::unwrap_used, reason = "a store that was poisoned fails its test")]

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{
    Bulk, BulkStep, CancelTasks, Control as _, Controlled, CountTasks, DeleteTasks, Error,
    ListQueues, PauseQueue, Place, QueueList, QueueState, Queues, Result, TaskCount,
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
        let cancelled = self.cancelled_at_place.lock().unwrap().take();
        if let Some(id) = cancelled {
            let (tenant, tasks, reason) = (tenant.clone(), vec![id], String::new());
            self.store.cancel(CancelTasks { tenant, tasks, reason }).await?;
        }
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
