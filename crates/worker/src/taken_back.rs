//! Leases that were taken back while their handlers run. There is no state per attempt: handlers
//! that wait for a cancel look here, and all are woken when a lease is added, which is rare.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use duly_core::id::TaskId;
use duly_core::limits::CONCURRENCY;
use duly_core::ports::work_source::TakenBack;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Leases that were taken back recently.
#[derive(Clone, Debug, Default)]
pub(crate) struct TakenBackLeases {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    recent: Mutex<Recent>,
    added: Notify,
}

#[derive(Debug, Default)]
struct Recent {
    /// For each task, the epoch up to which its leases are gone.
    epochs: HashMap<TaskId, u32>,
    /// The same tasks, oldest first.
    order: VecDeque<TaskId>,
}

impl TakenBackLeases {
    pub(crate) fn add(&self, leases: Vec<TakenBack>) {
        let mut recent = self.shared.recent.lock();
        for TakenBack { task, epoch, .. } in leases {
            let known = recent.epochs.insert(task, epoch);
            if let Some(known) = known {
                recent.epochs.insert(task, known.max(epoch));
            } else {
                recent.order.push_back(task);
            }
        }
        // No more handlers run than this, so older entries concern none of them.
        while recent.order.len() > CONCURRENCY {
            let oldest = recent.order.pop_front();
            oldest.map(|task| recent.epochs.remove(&task));
        }
        drop(recent);
        self.shared.added.notify_waiters();
    }

    pub(crate) fn contains(&self, task: TaskId, epoch: u32) -> bool {
        self.shared.recent.lock().epochs.get(&task).is_some_and(|gone| epoch <= *gone)
    }

    /// Resolves when this lease was taken back.
    pub(crate) async fn wait_for(&self, task: TaskId, epoch: u32) {
        loop {
            // Created before the check, so that a lease added in between is not missed.
            let added = self.shared.added.notified();
            if self.contains(task, epoch) {
                return;
            }
            added.await;
        }
    }
}
