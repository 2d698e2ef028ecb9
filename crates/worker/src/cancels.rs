//! Which leases were taken back while their handlers run. Nothing is kept per attempt: a handler
//! that wants to know looks here, and all are woken when something is added, which is rare.

use std::collections::VecDeque;
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
    recent: Mutex<VecDeque<TakenBack>>,
    news: Notify,
}

impl Cancels {
    pub(crate) fn add(&self, leases: Vec<TakenBack>) {
        let mut recent = self.shared.recent.lock();
        recent.extend(leases);
        // No more handlers run than this, so what is older concerns nobody.
        let surplus = recent.len().saturating_sub(CONCURRENCY);
        recent.drain(..surplus);
        drop(recent);
        self.shared.news.notify_waiters();
    }

    pub(crate) fn holds(&self, task: TaskId, epoch: u32) -> bool {
        let gone = |lost: &TakenBack| lost.task == task && epoch <= lost.epoch;
        self.shared.recent.lock().iter().any(gone)
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
