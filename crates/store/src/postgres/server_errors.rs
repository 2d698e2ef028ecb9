//! What the last calls have shown of the server's state, for the check of whether it takes writes.

use std::sync::atomic::{AtomicBool, Ordering};

use super::error::{Fault, Result};

#[derive(Debug, Default)]
pub(super) struct ServerErrors {
    /// Whether the last call failed for a reason outside the data.
    failing: AtomicBool,
    /// Whether a call found the disk full. The next one may need no space, and proves nothing.
    full: AtomicBool,
}

impl ServerErrors {
    /// Remembers whether the server did what it was asked.
    pub(super) fn note<T>(&self, answer: Result<T>) -> Result<T> {
        self.failing.store(answer.as_ref().is_err_and(Fault::is_environment), Ordering::Relaxed);
        if answer.as_ref().is_err_and(Fault::is_full) {
            self.full.store(true, Ordering::Relaxed);
        }
        answer
    }

    pub(super) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// The disk has space again.
    pub(super) fn clear_full(&self) {
        self.full.store(false, Ordering::Relaxed);
    }
}
