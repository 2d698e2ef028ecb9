//! How long to wait before a call is repeated, and what to log meanwhile.

use std::error::Error as _;
use std::time::Duration;

use duly_core::ports::random::Random;

use crate::error::Error;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);
/// The longest wait that a server may ask for by `Retry-After`.
const LONGEST_ASKED: Duration = Duration::from_secs(60);

/// The delays of one call that is repeated until it is answered.
pub(super) struct RetryPolicy {
    /// What the call does, for the log.
    to: &'static str,
    next: Duration,
}

impl RetryPolicy {
    pub(super) fn new(to: &'static str) -> Self {
        Self { to, next: FIRST }
    }

    /// How long to wait after this error: at least as long as the server asks for. The delay
    /// doubles each time, and half of it is random, so that workers do not all call a restarted
    /// server at once.
    pub(super) fn delay_after(&mut self, error: &Error, random: &dyn Random) -> Duration {
        let cause = error.source().map(tracing::field::display);
        if self.next == FIRST {
            tracing::warn!(%error, cause, "cannot {}; trying again until it works", self.to);
        } else {
            tracing::debug!(%error, cause, "still cannot {}", self.to);
        }
        let half = self.next / 2;
        self.next = (self.next * 2).min(LONGEST);
        let asked = error.retry_after().unwrap_or_default().min(LONGEST_ASKED);
        asked.max(half) + half.mul_f64(fraction(random.next()))
    }

    /// Starts over after a success.
    pub(super) fn reset(&mut self) {
        if self.next != FIRST {
            tracing::info!("can {} again", self.to);
            self.next = FIRST;
        }
    }
}

/// A number from 0 up to 1.
fn fraction(random: u64) -> f64 {
    f64::from(u32::try_from(random >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Always(u64);

    impl Random for Always {
        fn fill(&self, numbers: &mut [u64]) {
            numbers.fill(self.0);
        }
    }

    #[test]
    fn waits_double_up_to_two_seconds_and_start_over() {
        let error = Error::BadToken;
        for (random, waits) in [(0, [25, 50, 100]), (u64::MAX, [50, 100, 200])] {
            let mut retry_policy = RetryPolicy::new("test");
            let mut next = || retry_policy.delay_after(&error, &Always(random));
            assert_eq!([(); 3].map(|()| next()), waits.map(Duration::from_millis));
            let last = [(); 10].map(|()| next())[9];
            assert_eq!(last, if random == 0 { LONGEST / 2 } else { LONGEST });
            retry_policy.reset();
            let first = retry_policy.delay_after(&error, &Always(random));
            assert_eq!(first, Duration::from_millis(waits[0]));
        }
    }

    #[test]
    fn a_server_that_asks_for_a_longer_wait_gets_it() {
        let busy = |seconds| Error::Unexpected {
            url: String::new(),
            status: 503,
            retry_after: Some(Duration::from_secs(seconds)),
            source: None,
        };
        let wait = |seconds| RetryPolicy::new("test").delay_after(&busy(seconds), &Always(0));
        assert_eq!(wait(7), Duration::from_secs(7));
        assert_eq!(wait(0), Duration::from_millis(25));
        assert_eq!(wait(3600), LONGEST_ASKED);
    }
}
