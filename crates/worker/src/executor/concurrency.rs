//! The number of handlers that a worker runs at once, which may change while it runs.

use duly_core::limits::CONCURRENCY;
use tokio::sync::watch;

/// The number of handlers that run at once in one worker. Clones change the same number.
#[derive(Clone, Debug)]
pub struct Concurrency(watch::Sender<usize>);

/// The executor's end of [`Concurrency`].
#[derive(Debug)]
pub(super) struct Changes(watch::Receiver<usize>);

pub(super) fn channel(slots: usize) -> (Concurrency, Changes) {
    check(slots);
    let (sender, receiver) = watch::channel(slots);
    (Concurrency(sender), Changes(receiver))
}

fn check(slots: usize) {
    assert!((1..=CONCURRENCY).contains(&slots), "bad concurrency: {slots}");
}

impl Concurrency {
    /// Changes the number. A higher number takes effect at once. With a lower one, running
    /// handlers go on, and none starts until fewer run.
    ///
    /// # Panics
    /// When the number is 0 or exceeds the limit.
    pub fn set(&self, slots: usize) {
        check(slots);
        self.0.send_if_modified(|known| std::mem::replace(known, slots) != slots);
    }
}

impl Changes {
    /// Waits for the next number; for ever if no [`Concurrency`] is left. Dropping the future loses
    /// nothing.
    pub(super) async fn next(&mut self) -> usize {
        match self.0.changed().await {
            Ok(()) => *self.0.borrow_and_update(),
            Err(_) => std::future::pending().await,
        }
    }
}
