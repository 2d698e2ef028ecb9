//! What time it is at the server, without asking each time.
//!
//! An estimate is good for deciding when to look. It is never good for computing a due time: the server
//! does that itself, see `duly.submit_tasks`.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Most answers arrive within this time; what becomes due meanwhile is worth a look too.
const LAG: Duration = Duration::from_millis(20);
/// A reading is asked for anew after this: two clocks drift apart, though slowly.
const FRESH: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Estimate {
    last: Mutex<Reading>,
    #[cfg(feature = "planted-bugs")]
    planted: std::sync::atomic::AtomicBool,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    /// Of the server's clock.
    millis: i64,
    /// When it arrived. The server took it before, so what follows from it is never ahead.
    at: Instant,
    /// When the server last answered.
    answered: Instant,
}

impl Reading {
    fn new(millis: i64, at: Instant) -> Self {
        Self { millis, at, answered: at }
    }

    /// The least that the server's clock can show now, unless it was set back.
    fn at(self, now: Instant) -> i64 {
        self.millis.saturating_add(millis_between(self.at, now))
    }
}

impl Estimate {
    pub(super) fn new(now: i64) -> Self {
        Self {
            last: Mutex::new(Reading::new(now, Instant::now())),
            #[cfg(feature = "planted-bugs")]
            planted: false.into(),
        }
    }

    /// Takes a reading that was asked for at `sent` and arrives now.
    pub(super) fn learn(&self, millis: i64, sent: Instant) {
        self.learn_at(millis, sent, Instant::now());
    }

    /// The server took the reading between `sent` and `arrived`. If its clock would be behind the
    /// estimate even had it answered at the very beginning, it was set back. A reading that was long on
    /// its way, over a slow network or to a node that stood still, proves nothing and is left out.
    fn learn_at(&self, millis: i64, sent: Instant, arrived: Instant) {
        let mut last = self.last.lock();
        let known = last.at(arrived);
        let most = millis.saturating_add(millis_between(sent, arrived));
        if millis >= known || most < known || self.is_trusted() && known - millis >= 500 {
            *last = Reading::new(millis, arrived);
        } else {
            last.answered = arrived;
        }
    }

    /// A little after the server's time, rather than before: what is worth looking at.
    pub(super) fn now(&self) -> i64 {
        let lag = i64::try_from(LAG.as_millis()).unwrap_or(0);
        self.last.lock().at(Instant::now()).saturating_add(lag)
    }

    /// The server's time, or a little before; nothing if it has not answered for a while.
    pub(super) fn known(&self) -> Option<i64> {
        let (last, now) = (*self.last.lock(), Instant::now());
        (now.saturating_duration_since(last.answered) < FRESH).then(|| last.at(now))
    }

    /// Whether due times are computed from the estimate: only where that bug is planted.
    pub(super) fn is_trusted(&self) -> bool {
        #[cfg(feature = "planted-bugs")]
        return self.planted.load(std::sync::atomic::Ordering::Relaxed);
        #[cfg(not(feature = "planted-bugs"))]
        false
    }

    #[cfg(feature = "planted-bugs")]
    pub(super) fn plant_late_reading(&self) {
        self.planted.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

fn millis_between(from: Instant, to: Instant) -> i64 {
    i64::try_from(to.saturating_duration_since(from).as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An estimate of 10,000 ms at the instant that is returned.
    fn estimate() -> (Estimate, Instant) {
        let start = Instant::now();
        let estimate = Estimate::new(0);
        *estimate.last.lock() = Reading::new(10_000, start);
        (estimate, start)
    }

    fn after(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    fn at(estimate: &Estimate, instant: Instant) -> i64 {
        estimate.last.lock().at(instant)
    }

    #[test]
    fn a_newer_reading_counts() {
        let (clock, start) = estimate();
        clock.learn_at(11_000, after(start, 800), after(start, 900));
        assert_eq!(at(&clock, after(start, 1_900)), 12_000);
    }

    #[test]
    fn a_reading_that_arrives_late_does_not_set_the_clock_back() {
        let (clock, start) = estimate();
        // Taken at 10,001 and received 4 s later, after the process had stood still.
        clock.learn_at(10_001, start, after(start, 4_000));
        assert_eq!(at(&clock, after(start, 4_000)), 14_000);
        assert!(clock.last.lock().answered == after(start, 4_000), "the server did answer");
    }

    #[test]
    fn a_clock_that_was_set_back_is_followed() {
        let (clock, start) = estimate();
        clock.learn_at(5_000, after(start, 100), after(start, 110));
        assert_eq!(at(&clock, after(start, 110)), 5_000);
        // Also by little, as soon as an answer is quick enough to show it.
        clock.learn_at(4_990, after(start, 120), after(start, 125));
        assert_eq!(at(&clock, after(start, 125)), 4_990);
    }
}
