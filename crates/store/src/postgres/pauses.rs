//! Queues from which nothing is granted, as this node last read them. A claim reads them again in
//! its transaction; what is known here only saves looking for what cannot be had.

use std::sync::Arc;

use duly_core::name::{Lane, QueueName, TenantName};
use foldhash::HashSet;
use parking_lot::RwLock;

type Queues = HashSet<(TenantName, QueueName)>;

#[derive(Debug, Default)]
pub(super) struct Pauses {
    queues: RwLock<Arc<Queues>>,
}

impl Pauses {
    pub(super) fn is_paused(&self, lane: &Lane) -> bool {
        let queues = Arc::clone(&self.queues.read());
        !queues.is_empty() && queues.contains(&(lane.tenant.clone(), lane.queue.clone()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.read().is_empty()
    }

    /// What was just read.
    pub(super) fn replace(&self, read: impl Iterator<Item = (TenantName, QueueName)>) {
        let read: Queues = read.collect();
        if **self.queues.read() != read {
            *self.queues.write() = Arc::new(read);
        }
    }

    /// One queue is paused, or is not any more, since a commit.
    pub(super) fn set(&self, tenant: &TenantName, queue: &QueueName, paused: bool) {
        let mut queues = self.queues.write();
        let key = (tenant.clone(), queue.clone());
        if paused {
            Arc::make_mut(&mut queues).insert(key);
        } else {
            Arc::make_mut(&mut queues).remove(&key);
        }
    }
}
