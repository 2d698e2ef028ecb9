//! When the next lease is overdue, as far as this node has seen leases granted: what the observer
//! sleeps by, so that nothing is scanned at an interval.

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
    /// Leases were granted.
    pub(crate) fn expect(&self, leases: &[Lease]) {
        if let Some(first) = leases.iter().map(Lease::deadline).min() {
            self.look_at(first);
        }
    }

    /// Something is to be looked at by this time.
    pub(crate) fn look_at(&self, at: Timestamp) {
        if at.millis() < self.next.fetch_min(at.millis(), Ordering::Relaxed) {
            self.changed.notify_one();
        }
    }

    /// Forgets what was expected; the store is asked next, and [`Self::learn`] says what it knows.
    pub(crate) fn forget(&self) {
        self.next.store(i64::MAX, Ordering::Relaxed);
    }

    /// The store expects something at this time.
    pub(crate) fn learn(&self, next: Timestamp) {
        self.next.fetch_min(next.millis(), Ordering::Relaxed);
    }

    /// The earliest time, if there is one.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let next = self.next.load(Ordering::Relaxed);
        (next < i64::MAX).then(|| Timestamp::clamped(next))
    }

    /// Waits until there is an earlier time.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// There is something else to watch.
    pub(crate) fn wake(&self) {
        self.woken.notify_one();
    }

    /// Waits for [`Self::wake`].
    pub(crate) async fn woken(&self) {
        self.woken.notified().await;
    }
}
