//! Which leases were taken back while their handlers run. Nothing is kept per attempt: a handler
//! that wants to know looks here, and all are woken when something is added, which is rare.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use duly_core::id::TaskId;
use duly_core::limits::CONCURRENCY;
use duly_core::ports::work_source::TakenBack;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Leases that were taken back lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancels {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    recent: Mutex<Recent>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Recent {
    /// The epoch up to which each task's leases are gone.
    epochs: HashMap<TaskId, u32>,
    /// The same tasks, oldest first.
    order: VecDeque<TaskId>,
}

impl Cancels {
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
        // No more handlers run than this, so what is older concerns none of them.
        while recent.order.len() > CONCURRENCY {
            let oldest = recent.order.pop_front();
            oldest.map(|task| recent.epochs.remove(&task));
        }
        drop(recent);
        self.shared.news.notify_waiters();
    }

    pub(crate) fn holds(&self, task: TaskId, epoch: u32) -> bool {
        self.shared.recent.lock().epochs.get(&task).is_some_and(|gone| epoch <= *gone)
    }

    /// Resolves when this lease was taken back.
    pub(crate) async fn of(&self, task: TaskId, epoch: u32) {
        loop {
            // Armed before the look, so that nothing in between is missed.
            let news = self.shared.news.notified();
            if self.holds(task, epoch) {
                return;
            }
            news.await;
        }
    }
}
