//! Clocks for the stores that have no server of their own.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use duly_core::ports::clock::Clock;
use duly_core::time::Timestamp;
use parking_lot::Mutex;

/// The machine's clock, except that it never goes back: after a step backwards it runs on from
/// where it was, at the pace of the monotonic clock, until the machine's has caught up.
#[derive(Debug)]
pub struct SystemClock {
    anchor: Mutex<Anchor>,
}

/// A reading of both clocks.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    millis: i64,
    at: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { anchor: Mutex::new(Anchor { millis: wall(), at: Instant::now() }) }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let reading = Anchor { millis: wall(), at: Instant::now() };
        let mut anchor = self.anchor.lock();
        Timestamp::clamped(anchor.advance(reading))
    }
}

impl Anchor {
    fn advance(&mut self, reading: Self) -> i64 {
        let elapsed = reading.at.saturating_duration_since(self.at).as_millis();
        let expected = self.millis.saturating_add(i64::try_from(elapsed).unwrap_or(i64::MAX));
        if reading.millis >= expected {
            *self = reading;
        }
        reading.millis.max(expected)
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
fn wall() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The machine's clock, ahead by a fixed time: for tests of servers that were down for long.
#[cfg(feature = "planted-bugs")]
#[derive(Debug)]
pub struct ClockAhead {
    clock: SystemClock,
    by: Duration,
}

#[cfg(feature = "planted-bugs")]
impl ClockAhead {
    /// A clock that is ahead by this time.
    pub fn new(by: Duration) -> Self {
        Self { clock: SystemClock::default(), by }
    }
}

#[cfg(feature = "planted-bugs")]
impl Clock for ClockAhead {
    fn now(&self) -> Timestamp {
        self.clock.now().plus(self.by)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_backwards_does_not_stop_the_clock() {
        let start = Instant::now();
        let mut anchor = Anchor { millis: 3_600_000, at: start };
        let mut read = |millis, after| {
            anchor.advance(Anchor { millis, at: start + Duration::from_millis(after) })
        };
        assert_eq!(read(0, 0), 3_600_000);
        assert_eq!(read(5_000, 5_000), 3_605_000, "time goes on");
        assert_eq!(read(4_000_000, 6_000), 4_000_000, "a step forward counts");
        assert_eq!(read(4_000_500, 6_500), 4_000_500);
    }
}
