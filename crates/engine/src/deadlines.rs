//! The earliest deadline of the leases that this node knows. The observer sleeps until then, so
//! that nothing is scanned at an interval.

use std::sync::atomic::{AtomicI64, Ordering};

use duly_core::lease::Lease;
use duly_core::time::Timestamp;
use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Deadlines {
    next: AtomicI64,
    changed: Notify,
    woken: Notify,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { next: AtomicI64::new(i64::MAX), changed: Notify::new(), woken: Notify::new() }
    }
}

impl Deadlines {
    /// Adds the deadlines of granted leases.
    pub(crate) fn add_leases(&self, leases: &[Lease]) {
        if let Some(first) = leases.iter().map(Lease::deadline).min() {
            self.add(first);
        }
    }

    /// Adds a deadline, and wakes [`Self::changed`] if it is the earliest.
    pub(crate) fn add(&self, at: Timestamp) {
        if at.millis() < self.next.fetch_min(at.millis(), Ordering::Relaxed) {
            self.changed.notify_one();
        }
    }

    /// Forgets all deadlines. The observer asks the store next and passes its answer to
    /// [`Self::set_stored`].
    pub(crate) fn clear(&self) {
        self.next.store(i64::MAX, Ordering::Relaxed);
    }

    /// Adds the earliest deadline in the store. Wakes nothing: the observer is awake.
    pub(crate) fn set_stored(&self, next: Timestamp) {
        self.next.fetch_min(next.millis(), Ordering::Relaxed);
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let next = self.next.load(Ordering::Relaxed);
        (next < i64::MAX).then(|| Timestamp::clamped(next))
    }

    /// Waits for an earlier deadline.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Makes the observer look now: there is a new session to watch.
    pub(crate) fn wake(&self) {
        self.woken.notify_one();
    }

    /// Waits for [`Self::wake`].
    pub(crate) async fn woken(&self) {
        self.woken.notified().await;
    }
}
