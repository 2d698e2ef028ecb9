//! Waking those who wait for a task to end, or for what it reports. A wake-up is a hint: who waits
//! looks at the store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use duly_core::id::TaskId;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Who waits for which task.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    waiting: Mutex<HashMap<TaskId, Interest>>,
}

/// The waiters of one task, counted under the map's lock, so that the last one tidies up.
#[derive(Debug, Default)]
struct Interest {
    bells: Arc<Bells>,
    waiters: usize,
}

#[derive(Debug, Default)]
struct Bells {
    ended: Notify,
    reported: Notify,
}

impl Outcomes {
    /// Registers interest in a task until the watch is dropped.
    pub(crate) fn watch(self: &Arc<Self>, task: TaskId) -> Watch {
        let mut waiting = self.waiting.lock();
        let interest = waiting.entry(task).or_default();
        interest.waiters += 1;
        Watch { outcomes: Arc::clone(self), task, bells: Arc::clone(&interest.bells) }
    }

    /// Something happened to these tasks.
    pub(crate) fn announce(&self, tasks: impl IntoIterator<Item = TaskId>) {
        self.ring(tasks, |bells| &bells.ended);
    }

    /// These tasks have told something.
    pub(crate) fn announce_reports(&self, tasks: impl IntoIterator<Item = TaskId>) {
        self.ring(tasks, |bells| &bells.reported);
    }

    fn ring(&self, tasks: impl IntoIterator<Item = TaskId>, bell: fn(&Bells) -> &Notify) {
        let waiting = self.waiting.lock();
        if waiting.is_empty() {
            return;
        }
        for interest in tasks.into_iter().filter_map(|task| waiting.get(&task)) {
            bell(&interest.bells).notify_waiters();
        }
    }
}

/// Interest in one task.
pub(crate) struct Watch {
    outcomes: Arc<Outcomes>,
    task: TaskId,
    bells: Arc<Bells>,
}

impl Watch {
    /// Resolves at the next announcement after this call, even if it is polled only later.
    pub(crate) fn next(&self) -> tokio::sync::futures::Notified<'_> {
        self.bells.ended.notified()
    }

    /// The same for what the task reports.
    pub(crate) fn next_report(&self) -> tokio::sync::futures::Notified<'_> {
        self.bells.reported.notified()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut waiting = self.outcomes.waiting.lock();
        if let Entry::Occupied(mut entry) = waiting.entry(self.task) {
            entry.get_mut().waiters -= 1;
            if entry.get().waiters == 0 {
                entry.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use duly_core::time::Timestamp;

    use super::*;

    #[test]
    fn the_last_waiter_tidies_up() {
        let outcomes = Arc::new(Outcomes::default());
        let task = TaskId::mint(Timestamp::EPOCH, 1, 1);
        let (one, two) = (outcomes.watch(task), outcomes.watch(task));
        drop(one);
        assert_eq!(outcomes.waiting.lock().len(), 1);
        drop(two);
        assert!(outcomes.waiting.lock().is_empty());
    }
}
