//! Wakes callers that wait for a task to end, or for its progress and logs. A wake-up is a hint:
//! the caller reads the store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use duly_core::id::TaskId;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The callers that wait, by task.
#[derive(Debug, Default)]
pub(crate) struct TaskWaiters {
    waiting: Mutex<HashMap<TaskId, Waiters>>,
    /// Rings when the first watch of its kind begins.
    polling: Notify,
}

/// The waiters of one task, counted under the map's lock: the last one removes the entry.
#[derive(Debug, Default)]
struct Waiters {
    signals: Arc<Signals>,
    count: usize,
    /// Those of them that want to know of every change.
    polling: usize,
}

#[derive(Debug, Default)]
struct Signals {
    changed: Notify,
    reported: Notify,
}

impl TaskWaiters {
    /// Registers interest in a task until the watch is dropped.
    pub(crate) fn watch(self: &Arc<Self>, task: TaskId) -> Watch {
        self.register(task, false)
    }

    /// The same for every change, also by other nodes: see [`crate::task_poll`].
    pub(crate) fn watch_closely(self: &Arc<Self>, task: TaskId) -> Watch {
        let watch = self.register(task, true);
        self.polling.notify_one();
        watch
    }

    fn register(self: &Arc<Self>, task: TaskId, polls: bool) -> Watch {
        let mut waiting = self.waiting.lock();
        let waiters = waiting.entry(task).or_default();
        waiters.count += 1;
        waiters.polling += usize::from(polls);
        Watch { waiters: Arc::clone(self), task, signals: Arc::clone(&waiters.signals), polls }
    }

    /// The tasks that are watched closely.
    pub(crate) fn polled(&self) -> Vec<TaskId> {
        let waiting = self.waiting.lock();
        waiting.iter().filter(|(_, waiters)| waiters.polling > 0).map(|(id, _)| *id).collect()
    }

    /// Waits until a task is watched closely.
    pub(crate) async fn polling(&self) {
        self.polling.notified().await;
    }

    /// Wakes the callers that wait for these tasks, which may have ended.
    pub(crate) fn notify_changed(&self, tasks: impl IntoIterator<Item = TaskId>) {
        self.notify(tasks, |signals| &signals.changed);
    }

    /// Wakes the callers that wait for progress and logs of these tasks.
    pub(crate) fn notify_reported(&self, tasks: impl IntoIterator<Item = TaskId>) {
        self.notify(tasks, |signals| &signals.reported);
    }

    fn notify(&self, tasks: impl IntoIterator<Item = TaskId>, signal: fn(&Signals) -> &Notify) {
        let waiting = self.waiting.lock();
        if waiting.is_empty() {
            return;
        }
        for waiters in tasks.into_iter().filter_map(|task| waiting.get(&task)) {
            signal(&waiters.signals).notify_waiters();
        }
    }
}

/// Interest in one task.
pub(crate) struct Watch {
    waiters: Arc<TaskWaiters>,
    task: TaskId,
    signals: Arc<Signals>,
    polls: bool,
}

impl Watch {
    /// Resolves at the next [`TaskWaiters::notify_changed`] after this call, even if it is polled
    /// only later.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.signals.changed.notified()
    }

    /// The same for [`TaskWaiters::notify_reported`].
    pub(crate) fn reported(&self) -> tokio::sync::futures::Notified<'_> {
        self.signals.reported.notified()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut waiting = self.waiters.waiting.lock();
        if let Entry::Occupied(mut entry) = waiting.entry(self.task) {
            entry.get_mut().count -= 1;
            entry.get_mut().polling -= usize::from(self.polls);
            if entry.get().count == 0 {
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
    fn the_last_waiter_removes_the_entry() {
        let waiters = Arc::new(TaskWaiters::default());
        let task = TaskId::mint(Timestamp::EPOCH, 1, 1);
        let (one, two) = (waiters.watch(task), waiters.watch(task));
        drop(one);
        assert_eq!(waiters.waiting.lock().len(), 1);
        drop(two);
        assert!(waiters.waiting.lock().is_empty());
    }
}
