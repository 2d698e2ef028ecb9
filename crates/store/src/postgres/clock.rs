//! What time it is at the server, without asking each time.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Answers take this long at the most, mostly; what becomes due meanwhile is worth a look too.
const LAG: Duration = Duration::from_millis(20);
/// A reading is asked for anew after this: two clocks drift apart, though slowly.
const FRESH: Duration = Duration::from_secs(5);
/// A reading that is so far behind is of a clock that was set back.
const SET_BACK: i64 = 500;

#[derive(Debug)]
pub(super) struct Estimate {
    last: Mutex<Reading>,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    /// Of the server's clock.
    millis: i64,
    /// When it arrived. It was taken before, so what follows from it is never ahead.
    at: Instant,
    /// When the server was last heard of.
    heard: Instant,
}

impl Reading {
    fn new(millis: i64) -> Self {
        let at = Instant::now();
        Self { millis, at, heard: at }
    }

    fn now(self) -> i64 {
        let since = i64::try_from(self.at.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.millis.saturating_add(since)
    }
}

impl Estimate {
    pub(super) fn new(now: i64) -> Self {
        Self { last: Mutex::new(Reading::new(now)) }
    }

    /// Takes a reading; one that was longer on its way tells less than the last.
    pub(super) fn learn(&self, now: i64) {
        let mut last = self.last.lock();
        let behind = last.now().saturating_sub(now);
        if (1..SET_BACK).contains(&behind) {
            last.heard = Instant::now();
        } else {
            *last = Reading::new(now);
        }
    }

    /// A little after the server's time, rather than before: what is worth looking at.
    pub(super) fn now(&self) -> i64 {
        self.last.lock().now().saturating_add(i64::try_from(LAG.as_millis()).unwrap_or(0))
    }

    /// The server's time, or a little before; nothing if it was not heard of for a while.
    pub(super) fn known(&self) -> Option<i64> {
        let last = *self.last.lock();
        (last.heard.elapsed() < FRESH).then(|| last.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_reading_does_not_set_the_clock_back() {
        let clock = Estimate::new(10_000);
        clock.learn(9_990);
        assert!(clock.known() >= Some(10_000));
        clock.learn(11_000);
        assert!(clock.known() >= Some(11_000));
    }

    #[test]
    fn a_clock_that_was_set_back_is_followed() {
        let clock = Estimate::new(10_000);
        clock.learn(5_000);
        assert!(clock.known() < Some(6_000));
    }
}
