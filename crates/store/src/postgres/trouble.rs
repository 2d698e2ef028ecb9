//! What the last calls have shown of the server's state, for whoever asks whether it takes writes.

use std::sync::atomic::{AtomicBool, Ordering};

use super::error::{Fault, Result};

#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// Whether the last call failed for a reason outside the data.
    there: AtomicBool,
    /// Whether one found no room. The next one may need none, and says nothing of it.
    full: AtomicBool,
}

impl Trouble {
    /// Remembers whether the server did what it was asked.
    pub(super) fn noting<T>(&self, answer: Result<T>) -> Result<T> {
        self.there.store(answer.as_ref().is_err_and(Fault::is_environment), Ordering::Relaxed);
        if answer.as_ref().is_err_and(Fault::is_full) {
            self.full.store(true, Ordering::Relaxed);
        }
        answer
    }

    pub(super) fn is_there(&self) -> bool {
        self.there.load(Ordering::Relaxed)
    }

    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// There is room again.
    pub(super) fn has_room(&self) {
        self.full.store(false, Ordering::Relaxed);
    }
}
