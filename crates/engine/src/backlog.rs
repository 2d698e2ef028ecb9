//! What waits for the store to take it, bounded by count and by bytes.

use std::sync::atomic::{AtomicUsize, Ordering};

use duly_core::limits::{SUBMIT_QUEUE, SUBMIT_QUEUE_BYTES};
use duly_core::task::NewTask;

/// Tasks that were sent to the submitter and not answered.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    tasks: AtomicUsize,
    bytes: AtomicUsize,
}

impl Backlog {
    /// Joins the queue, unless it is full already. What comes may exceed the bound by itself, so
    /// that a large batch is never refused by an idle server.
    pub(crate) fn join(&self, tasks: &[NewTask]) -> bool {
        let (count, bytes) = size(tasks);
        let before = self.tasks.fetch_add(count, Ordering::Relaxed);
        let bytes_before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let room = before < SUBMIT_QUEUE && bytes_before < SUBMIT_QUEUE_BYTES;
        if !room {
            self.leave(tasks);
        }
        room
    }

    /// Leaves the queue.
    pub(crate) fn leave(&self, tasks: &[NewTask]) {
        let (count, bytes) = size(tasks);
        self.tasks.fetch_sub(count, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

fn size(tasks: &[NewTask]) -> (usize, usize) {
    (tasks.len(), tasks.iter().map(|task| task.payload.len()).sum())
}
