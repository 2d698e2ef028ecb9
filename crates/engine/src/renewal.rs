//! How often a node renews its sign of life and its leadership.

use std::time::Duration;

/// When to renew something that expires after a time to live.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renewal {
    pub(crate) ttl: Duration,
}

impl Renewal {
    /// From one renewal to the next. Two in a row may be lost.
    pub(crate) fn interval(self) -> Duration {
        self.ttl / 3
    }

    /// How long to wait after the store did not answer: short, since the time to live is running.
    pub(crate) fn retry_delay(self) -> Duration {
        self.ttl / 10
    }
}
