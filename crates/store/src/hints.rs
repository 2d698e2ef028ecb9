//! Wake-ups inside one process: what became due since anybody looked.

use duly_core::ports::store::Hint;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Remembers what was hinted at and wakes whoever waits for it.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    pending: Mutex<Option<Hint>>,
    notify: Notify,
}

impl Hints {
    pub(crate) fn send(&self, hint: Hint) {
        let mut pending = self.pending.lock();
        *pending = Some(match pending.take() {
            Some(known) => known.merge(hint),
            None => hint,
        });
        drop(pending);
        self.notify.notify_one();
    }

    pub(crate) async fn next(&self) -> Hint {
        loop {
            if let Some(hint) = self.pending.lock().take() {
                return hint;
            }
            self.notify.notified().await;
        }
    }
}
