//! The reference model's queues.

use std::collections::BTreeSet;

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::limits::COUNT_ROWS;
use duly_core::name::{QueueName, TenantName};
use duly_core::ports::store::{
    Counted, ListQueues, Pause, PauseQueue, Place, QueueList, QueueState, Queues, Result,
};
use duly_core::state::Status;
use duly_core::task::{Task, claim_order};
use duly_core::time::Timestamp;

use super::MemoryStore;
use super::model::Model;

#[async_trait]
impl Queues for MemoryStore {
    async fn queues(&self, page: ListQueues) -> Result<QueueList> {
        Ok(self.model.lock().queues(&page, self.clock.now()))
    }

    async fn queue(&self, tenant: &TenantName, queue: &QueueName) -> Result<Option<QueueState>> {
        let model = self.model.lock();
        let known = model.queue_names(tenant).contains(queue);
        Ok(known.then(|| model.queue(tenant, queue, COUNT_ROWS, self.clock.now())))
    }

    async fn pause_queue(&self, order: PauseQueue) -> Result<bool> {
        Ok(self.model.lock().pause(order, self.clock.now()))
    }

    async fn resume_queue(&self, tenant: &TenantName, queue: &QueueName) -> Result<bool> {
        let hint = self.model.lock().resume(tenant, queue);
        self.hint_at(hint.flatten());
        Ok(hint.is_some())
    }

    async fn place(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Place>> {
        Ok(self.model.lock().place(tenant, id, self.clock.now()))
    }
}

impl Model {
    fn queue_names(&self, tenant: &TenantName) -> BTreeSet<QueueName> {
        let own = self.lanes.iter().filter(|lane| lane.tenant == *tenant);
        own.map(|lane| lane.queue.clone()).collect()
    }

    fn queues(&self, page: &ListQueues, now: Timestamp) -> QueueList {
        let ListQueues { tenant, after, limit, count_to } = page;
        let names = self.queue_names(tenant);
        let behind = |name: &&QueueName| after.as_ref().is_none_or(|after| *name > after);
        let mut names = names.iter().filter(behind);
        let shown = names.by_ref().take(*limit as usize);
        let queues: Vec<_> = shown.map(|name| self.queue(tenant, name, *count_to, now)).collect();
        let next = names.next().and(queues.last());
        let next_after = next.map(|last| last.queue.clone());
        QueueList { queues, next_after }
    }

    fn queue(
        &self,
        tenant: &TenantName,
        queue: &QueueName,
        count_to: u32,
        now: Timestamp,
    ) -> QueueState {
        let own: Vec<&Task> = self.tasks_in(tenant, queue).collect();
        let in_state = |status| own.iter().filter(move |task| task.status == status);
        let due = || in_state(Status::Pending).filter(|task| task.run_at <= now);
        let counted = |count| Counted::up_to(count_to, count);
        QueueState {
            queue: queue.clone(),
            paused: self.paused.get(&(tenant.clone(), queue.clone())).cloned(),
            waiting: counted(in_state(Status::Pending).count()),
            due: counted(due().count()),
            running: counted(in_state(Status::Running).count()),
            dead: counted(in_state(Status::Failed).count()),
            oldest_due: due().map(|task| task.run_at).min(),
        }
    }

    fn tasks_in(&self, tenant: &TenantName, queue: &QueueName) -> impl Iterator<Item = &Task> {
        let inside = |task: &&Task| task.lane.tenant == *tenant && task.lane.queue == *queue;
        self.tasks.values().filter(inside)
    }

    fn pause(&mut self, order: PauseQueue, now: Timestamp) -> bool {
        let PauseQueue { tenant, queue, note } = order;
        let known = self.queue_names(&tenant).contains(&queue);
        if known {
            let key = (tenant, queue);
            let since = self.paused.get(&key).map_or(now, |pause| pause.since);
            self.paused.insert(key, Pause { since, note });
        }
        known
    }

    /// Nothing if there is no such queue; else when something in it is due, if anything waits.
    fn resume(&mut self, tenant: &TenantName, queue: &QueueName) -> Option<Option<Timestamp>> {
        if !self.queue_names(tenant).contains(queue) {
            return None;
        }
        self.paused.remove(&(tenant.clone(), queue.clone()));
        let waiting = self.tasks_in(tenant, queue).filter(|task| task.status == Status::Pending);
        Some(waiting.map(|task| task.run_at).min())
    }

    fn place(&self, tenant: &TenantName, id: TaskId, now: Timestamp) -> Option<Place> {
        let task = self.tasks.get(&id).filter(|task| task.lane.tenant == *tenant)?;
        if task.status != Status::Pending {
            return None;
        }
        let order = |task: &Task| (claim_order(task.run_at, task.priority), task.id);
        let waits = |other: &&Task| other.status == Status::Pending && other.run_at <= now;
        let due = self.tasks_in(tenant, &task.lane.queue).filter(waits);
        let ahead = due.filter(|other| order(other) < order(task)).count();
        let paused = self.paused.get(&(tenant.clone(), task.lane.queue.clone())).cloned();
        Some(Place { paused, ahead: Counted::up_to(COUNT_ROWS, ahead) })
    }
}
