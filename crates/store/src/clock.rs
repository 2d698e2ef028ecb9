//! Clocks for the stores that have no server of their own.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use duly_core::ports::clock::Clock;
use duly_core::time::Timestamp;

/// The machine's clock, held still while it goes backwards: an instant that has come stays come.
#[derive(Debug, Default)]
pub struct SystemClock {
    latest: AtomicI64,
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = i64::try_from(since.as_millis()).expect("the year is below 9999");
        let latest = self.latest.fetch_max(millis, Ordering::Relaxed);
        Timestamp::from_millis(millis.max(latest))
    }
}

/// A clock that stands until it is moved.
#[derive(Debug)]
pub struct ManualClock {
    millis: AtomicI64,
}

impl ManualClock {
    /// A clock that stands at `start`.
    pub fn new(start: Timestamp) -> Self {
        Self { millis: AtomicI64::new(start.millis()) }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).expect("a step of the clock fits");
        self.millis.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis.load(Ordering::SeqCst))
    }
}
