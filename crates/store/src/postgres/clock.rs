//! About what time it is at the server, without asking: good enough to tell what is worth looking at,
//! and nothing else is judged by it.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Answers take this long at the most, mostly; what becomes due meanwhile is worth a look too.
const LAG: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Estimate {
    /// A reading of the server's clock, and when it arrived.
    last: Mutex<(i64, Instant)>,
}

impl Estimate {
    pub(super) fn new(now: i64) -> Self {
        Self { last: Mutex::new((now, Instant::now())) }
    }

    pub(super) fn learn(&self, now: i64) {
        *self.last.lock() = (now, Instant::now());
    }

    /// A little after the server's time, rather than before.
    pub(super) fn now(&self) -> i64 {
        let (millis, at) = *self.last.lock();
        let since = i64::try_from((at.elapsed() + LAG).as_millis()).unwrap_or(i64::MAX);
        millis.saturating_add(since)
    }
}
