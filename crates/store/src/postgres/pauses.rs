//! What nothing is granted from, as this node last read it: queues that are paused and tenants that are
//! suspended. A claim reads it again in its transaction; what is known here only saves looking for what
//! cannot be had.

use std::sync::Arc;

use duly_core::name::{Lane, QueueName, TenantName};
use foldhash::HashSet;
use parking_lot::RwLock;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct HeldBack {
    queues: HashSet<(TenantName, QueueName)>,
    tenants: HashSet<TenantName>,
}

#[derive(Debug, Default)]
pub(super) struct Pauses {
    known: RwLock<Arc<HeldBack>>,
}

impl Pauses {
    /// Whether the lane's queue is paused or its tenant suspended.
    pub(super) fn is_paused(&self, lane: &Lane) -> bool {
        let known = Arc::clone(&self.known.read());
        let HeldBack { queues, tenants } = &*known;
        !queues.is_empty() && queues.contains(&(lane.tenant.clone(), lane.queue.clone()))
            || !tenants.is_empty() && tenants.contains(&lane.tenant)
    }

    pub(super) fn is_empty(&self) -> bool {
        let known = self.known.read();
        known.queues.is_empty() && known.tenants.is_empty()
    }

    /// What was just read: queues, and tenants of which all queues are meant.
    pub(super) fn replace(&self, rows: impl Iterator<Item = (TenantName, Option<QueueName>)>) {
        let mut read = HeldBack::default();
        for (tenant, queue) in rows {
            match queue {
                Some(queue) => drop(read.queues.insert((tenant, queue))),
                None => drop(read.tenants.insert(tenant)),
            }
        }
        if **self.known.read() != read {
            *self.known.write() = Arc::new(read);
        }
    }

    /// One queue is paused, or is not any more, since a commit.
    pub(super) fn set(&self, tenant: &TenantName, queue: &QueueName, paused: bool) {
        let mut known = self.known.write();
        let queues = &mut Arc::make_mut(&mut known).queues;
        let key = (tenant.clone(), queue.clone());
        if paused {
            queues.insert(key);
        } else {
            queues.remove(&key);
        }
    }

    /// One tenant is suspended, or is not any more, since a commit.
    pub(super) fn set_suspended(&self, tenant: &TenantName, suspended: bool) {
        let mut known = self.known.write();
        let tenants = &mut Arc::make_mut(&mut known).tenants;
        if suspended {
            tenants.insert(tenant.clone());
        } else {
            tenants.remove(tenant);
        }
    }
}
