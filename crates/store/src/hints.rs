//! Wake-ups inside one process: the earliest due time that was stored since anybody looked.

use duly_core::time::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Remembers the earliest hint and wakes whoever waits for it.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    earliest: Mutex<Option<Timestamp>>,
    notify: Notify,
}

impl Hints {
    pub(crate) fn send(&self, due: Timestamp) {
        let mut earliest = self.earliest.lock();
        *earliest = Some(earliest.map_or(due, |known| known.min(due)));
        drop(earliest);
        self.notify.notify_one();
    }

    pub(crate) async fn next(&self) -> Timestamp {
        loop {
            if let Some(due) = self.earliest.lock().take() {
                return due;
            }
            self.notify.notified().await;
        }
    }
}
