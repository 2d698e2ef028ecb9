//! How far an attempt says it has come. It outlives the attempt: the next one of the same run may
//! go on from there.

use std::sync::Arc;

use crate::limits::{COUNT, MESSAGE_CHARS};
use crate::time::Timestamp;

/// What a handler says of its work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Steps that are done, in the handler's own unit; at most [`COUNT`].
    pub done: u64,
    /// Steps there are, where the handler knows; at most [`COUNT`].
    pub total: Option<u64>,
    /// What it is at, for people; at most [`MESSAGE_CHARS`] characters.
    pub message: Option<String>,
    /// The handler's own note for its next attempt: JSON text, checked, of at most
    /// [`crate::limits::CHECKPOINT_BYTES`]. One that is left out leaves the last one as it is.
    pub checkpoint: Option<Arc<str>>,
}

impl Progress {
    /// So many steps; numbers over the limit are lowered to it.
    pub fn new(done: u64, total: Option<u64>) -> Self {
        let total = total.map(|total| total.min(COUNT));
        Self { done: done.min(COUNT), total, message: None, checkpoint: None }
    }

    /// The same with a message, which is cut if it is over the limit.
    #[must_use]
    pub fn with_message(self, message: &str) -> Self {
        // Databases refuse U+0000.
        let message = message.chars().map(|it| if it == '\0' { '\u{fffd}' } else { it });
        Self { message: Some(message.take(MESSAGE_CHARS).collect()), ..self }
    }

    /// How much of the whole is done: 100 only when all of it is; nothing if the total is unknown.
    pub fn percent(&self) -> Option<u8> {
        let total = self.total.filter(|total| *total > 0)?;
        let percent = u128::from(self.done.min(total)) * 100 / u128::from(total);
        u8::try_from(percent).ok()
    }
}

/// What was last reported for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedProgress {
    /// What the handler said.
    pub progress: Progress,
    /// When that was stored.
    pub at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_percent_means_all_of_it() {
        for (done, total, percent) in [
            (0, Some(3), Some(0)),
            (2, Some(3), Some(66)),
            (999, Some(1000), Some(99)),
            (3, Some(3), Some(100)),
            (9, Some(3), Some(100)),
            (u64::MAX, Some(u64::MAX), Some(100)),
            (3, None, None),
            (0, Some(0), None),
        ] {
            assert_eq!(Progress::new(done, total).percent(), percent, "{done} of {total:?}");
        }
    }

    #[test]
    fn what_is_too_large_is_cut() {
        let progress = Progress::new(u64::MAX, Some(u64::MAX)).with_message(&"ä".repeat(1000));
        assert_eq!((progress.done, progress.total), (COUNT, Some(COUNT)));
        assert_eq!(progress.message.unwrap().chars().count(), MESSAGE_CHARS);
        let progress = Progress::new(1, None).with_message("a\0b");
        assert_eq!(progress.message.as_deref(), Some("a\u{fffd}b"));
    }
}
