//! The bound on tasks that wait for the submitter, by count and by bytes.

use std::sync::atomic::{AtomicUsize, Ordering};

use duly_core::limits::{SUBMIT_QUEUE, SUBMIT_QUEUE_BYTES};
use duly_core::task::NewTask;

/// How many tasks were sent to the submitter and not answered.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    tasks: AtomicUsize,
    bytes: AtomicUsize,
}

impl Backlog {
    /// Adds tasks, unless the backlog is full already. A batch may exceed the bound by itself, so
    /// that an idle server never refuses a large batch.
    pub(crate) fn try_add(&self, tasks: &[NewTask]) -> bool {
        let (count, bytes) = size(tasks);
        let before = self.tasks.fetch_add(count, Ordering::Relaxed);
        let bytes_before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let room = before < SUBMIT_QUEUE && bytes_before < SUBMIT_QUEUE_BYTES;
        if !room {
            self.remove(tasks);
        }
        room
    }

    pub(crate) fn remove(&self, tasks: &[NewTask]) {
        let (count, bytes) = size(tasks);
        self.tasks.fetch_sub(count, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

fn size(tasks: &[NewTask]) -> (usize, usize) {
    (tasks.len(), tasks.iter().map(|task| task.payload.len()).sum())
}
