//! How long a failed attempt waits for the next one.

use std::time::Duration;

/// Exponential growth with full jitter: the wait is drawn evenly from zero to the grown bound, so
/// that tasks that failed together do not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// The bound after the first failure.
    pub base: Duration,
    /// What the bound grows by with each further failure.
    pub factor: u32,
    /// What the bound never exceeds.
    pub cap: Duration,
}

/// The policy of every task: 1 s, doubled, at most an hour.
pub const DEFAULT: BackOff =
    BackOff { base: Duration::from_secs(1), factor: 2, cap: Duration::from_secs(60 * 60) };

impl BackOff {
    /// The wait after failed attempt number `attempt` (the first is 1). `entropy` is one random
    /// number, drawn by the caller.
    pub fn wait(&self, attempt: u32, entropy: u64) -> Duration {
        let bound = self.bound(attempt).as_millis();
        // Scales 64 random bits to 0 ..= bound without a division.
        let millis = (u128::from(entropy) * (bound + 1)) >> 64;
        Duration::from_millis(u64::try_from(millis).expect("not above the cap"))
    }

    fn bound(&self, attempt: u32) -> Duration {
        let growth = self.factor.checked_pow(attempt.saturating_sub(1));
        growth
            .and_then(|growth| self.base.checked_mul(growth))
            .map_or(self.cap, |d| d.min(self.cap))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bound_doubles_up_to_the_cap() {
        let bounds: Vec<_> = (1..=14).map(|attempt| DEFAULT.bound(attempt).as_secs()).collect();
        assert_eq!(bounds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]);
        assert_eq!(DEFAULT.bound(u32::MAX), DEFAULT.cap);
    }

    proptest! {
        #[test]
        fn a_wait_lies_within_its_bound(attempt in 0_u32.., entropy: u64) {
            prop_assert!(DEFAULT.wait(attempt, entropy) <= DEFAULT.bound(attempt));
        }
    }

    #[test]
    fn the_ends_of_the_range_are_reached() {
        assert_eq!(DEFAULT.wait(3, 0), Duration::ZERO);
        assert_eq!(DEFAULT.wait(3, u64::MAX), Duration::from_secs(4));
    }
}
