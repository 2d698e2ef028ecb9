//! The reference model's queues.

use std::collections::BTreeSet;

use async_trait::async_trait;
use duly_core::event::Event;
use duly_core::id::TaskId;
use duly_core::limits::{COUNT_ROWS, PAUSED_QUEUES, QUEUE_LANES};
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::store::{
    Counted, ListQueues, Pause, PauseQueue, QueueList, QueuePosition, QueueState, Queues, Result,
};
use duly_core::state::Status;
use duly_core::task::{Task, claim_order};
use duly_core::time::Timestamp;

use super::MemoryStore;
use super::model::Model;
use crate::audited::{self, Audited as _};

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
        let audited = order.audited();
        Ok(self.order(|| audited, |model, now| model.pause(order, now)))
    }

    async fn resume_queue(&self, tenant: &TenantName, queue: &QueueName) -> Result<bool> {
        let audited = || audited::resume_queue(tenant, queue);
        let hint = self.order(audited, |model, now| model.resume(tenant, queue, now));
        self.hint_at(hint.flatten());
        Ok(hint.is_some())
    }

    async fn place(&self, tenant: &TenantName, id: TaskId) -> Result<Option<QueuePosition>> {
        Ok(self.model.lock().place(tenant, id, self.clock.now()))
    }
}

impl Model {
    fn queue_names(&self, tenant: &TenantName) -> BTreeSet<QueueName> {
        let used = self.lanes.iter().filter(|lane| lane.tenant == *tenant).map(|lane| &lane.queue);
        let paused = self.paused.keys().filter(|(owner, _)| owner == tenant).map(|(_, it)| it);
        used.chain(paused).cloned().collect()
    }

    fn queues(&self, page: &ListQueues, now: Timestamp) -> QueueList {
        let ListQueues { tenant, after, limit, count_to } = page;
        let names = self.queue_names(tenant);
        let behind = |name: &&QueueName| after.as_ref().is_none_or(|after| *name > after);
        let (mut queues, mut types) = (Vec::new(), 0);
        for name in names.iter().filter(behind) {
            if queues.len() == *limit as usize || types >= QUEUE_LANES {
                let next_after = queues.last().map(|last: &QueueState| last.queue.clone());
                return QueueList { queues, next_after };
            }
            types += self.types(tenant, name).count();
            queues.push(self.queue(tenant, name, *count_to, now));
        }
        QueueList { queues, next_after: None }
    }

    fn queue(
        &self,
        tenant: &TenantName,
        queue: &QueueName,
        count_to: u32,
        now: Timestamp,
    ) -> QueueState {
        let looked_at: BTreeSet<_> = self.types(tenant, queue).take(QUEUE_LANES).collect();
        let unseen = self.types(tenant, queue).count() > QUEUE_LANES;
        let own: Vec<&Task> = self.tasks_in(tenant, queue).collect();
        let seen = |task: &&&Task| looked_at.contains(&task.lane.task_type);
        let in_state = |status| own.iter().filter(seen).filter(move |task| task.status == status);
        let due = || in_state(Status::Pending).filter(|task| task.run_at <= now);
        let counted = |count| perhaps_more(Counted::up_to(count_to, count), unseen);
        let running = own.iter().filter(|task| task.status == Status::Running).count();
        QueueState {
            queue: queue.clone(),
            paused: self.paused.get(&(tenant.clone(), queue.clone())).cloned(),
            waiting: counted(in_state(Status::Pending).count()),
            due: counted(due().count()),
            running: Counted::up_to(count_to, running),
            dead: counted(in_state(Status::Failed).count()),
            oldest_due: due().map(|task| task.run_at).min(),
        }
    }

    /// The types of a queue, by name.
    fn types(&self, tenant: &TenantName, queue: &QueueName) -> impl Iterator<Item = &TypeName> {
        let inside = |lane: &&Lane| lane.tenant == *tenant && lane.queue == *queue;
        self.lanes.iter().filter(inside).map(|lane| &lane.task_type)
    }

    fn tasks_in(&self, tenant: &TenantName, queue: &QueueName) -> impl Iterator<Item = &Task> {
        let inside = |task: &&Task| task.lane.tenant == *tenant && task.lane.queue == *queue;
        self.tasks.values().filter(inside)
    }

    fn pause(&mut self, order: PauseQueue, now: Timestamp) -> bool {
        let PauseQueue { tenant, queue, note } = order;
        let known = self.queue_names(&tenant).contains(&queue);
        if !known && self.paused.len() >= PAUSED_QUEUES as usize {
            return false;
        }
        let key = (tenant, queue);
        let known = self.paused.get(&key);
        let since = known.map_or(now, |pause| pause.since);
        if known.is_none_or(|pause| pause.note != note) {
            self.emit(Event::queue_paused(&key.0, &key.1, &note, now));
        }
        self.paused.insert(key, Pause { since, note });
        true
    }

    /// Nothing if there is no such queue; else when something in it is due, if anything waits.
    fn resume(
        &mut self,
        tenant: &TenantName,
        queue: &QueueName,
        now: Timestamp,
    ) -> Option<Option<Timestamp>> {
        if !self.queue_names(tenant).contains(queue) {
            return None;
        }
        if self.paused.remove(&(tenant.clone(), queue.clone())).is_some() {
            self.emit(Event::queue_resumed(tenant, queue, now));
        }
        let waiting = self.tasks_in(tenant, queue).filter(|task| task.status == Status::Pending);
        Some(waiting.map(|task| task.run_at).min())
    }

    fn place(&self, tenant: &TenantName, id: TaskId, now: Timestamp) -> Option<QueuePosition> {
        let task = self.tasks.get(&id).filter(|task| task.lane.tenant == *tenant)?;
        if task.status != Status::Pending {
            return None;
        }
        let order = |task: &Task| (claim_order(task.run_at, task.priority), task.id);
        let waits = |other: &&Task| other.status == Status::Pending && other.run_at <= now;
        let queue = &task.lane.queue;
        let mut looked_at: BTreeSet<_> = self.types(tenant, queue).take(QUEUE_LANES).collect();
        looked_at.insert(&task.lane.task_type);
        let seen = |other: &&Task| looked_at.contains(&other.lane.task_type);
        let due = self.tasks_in(tenant, queue).filter(waits).filter(seen);
        let ahead = due.filter(|other| order(other) < order(task)).count();
        let unseen = self.types(tenant, queue).count() > QUEUE_LANES;
        let ahead = perhaps_more(Counted::up_to(COUNT_ROWS, ahead), unseen);
        let paused = self.paused.get(&(tenant.clone(), queue.clone())).cloned();
        Some(QueuePosition { paused, ahead })
    }
}

fn perhaps_more(counted: Counted, unseen: bool) -> Counted {
    Counted { more: counted.more || unseen, ..counted }
}
