//! How often a node says that it is there, to be taken for alive and for the leader.

use std::time::Duration;

/// Of what holds for a while unless it is renewed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Without a renewal.
    pub(crate) ttl: Duration,
}

impl Pace {
    /// From one renewal to the next; two may be lost.
    pub(crate) fn every(self) -> Duration {
        self.ttl / 3
    }

    /// How long to wait for a store that did not answer: soon, since time is running.
    pub(crate) fn back_off(self) -> Duration {
        self.ttl / 10
    }
}
