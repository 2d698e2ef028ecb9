//! Waking those who wait for a task to end. A wake-up is a hint: who waits looks at the store.

use std::collections::HashMap;
use std::sync::Arc;

use duly_core::id::TaskId;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Who waits for which task.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    waiting: Mutex<HashMap<TaskId, Arc<Notify>>>,
}

impl Outcomes {
    /// Registers interest in a task until the watch is dropped.
    pub(crate) fn watch(self: &Arc<Self>, task: TaskId) -> Watch {
        let notify = Arc::clone(self.waiting.lock().entry(task).or_default());
        Watch { outcomes: Arc::clone(self), task, notify }
    }

    /// Something happened to these tasks.
    pub(crate) fn announce(&self, tasks: impl IntoIterator<Item = TaskId>) {
        let waiting = self.waiting.lock();
        if waiting.is_empty() {
            return;
        }
        for notify in tasks.into_iter().filter_map(|task| waiting.get(&task)) {
            notify.notify_waiters();
        }
    }
}

/// Interest in one task.
pub(crate) struct Watch {
    outcomes: Arc<Outcomes>,
    task: TaskId,
    notify: Arc<Notify>,
}

impl Watch {
    /// Resolves at the next announcement after this call, even if it is polled only later.
    pub(crate) fn next(&self) -> tokio::sync::futures::Notified<'_> {
        self.notify.notified()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut waiting = self.outcomes.waiting.lock();
        // Two counts mean the map's and this one: nobody else waits.
        if Arc::strong_count(&self.notify) <= 2 {
            waiting.remove(&self.task);
        }
    }
}
