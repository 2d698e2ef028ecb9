//! How long a failed attempt waits for the next one.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::limits;

/// How the waits of a task grow. The entropy is drawn by the caller, so the rule itself is pure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackOff {
    /// How the bound grows with each failure.
    pub strategy: Strategy,
    /// The bound after the first failure.
    pub base: Duration,
    /// What an exponential bound is multiplied by with each further failure.
    pub factor: f64,
    /// What the bound never exceeds.
    pub cap: Duration,
    /// How the wait is drawn from the bound.
    pub jitter: Jitter,
}

/// How the bound grows with each failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// No wait at all.
    None,
    /// Always the base.
    Fixed,
    /// The base times the number of failures.
    Linear,
    /// The base, multiplied by the factor with each further failure.
    Exponential,
}

/// How the wait is drawn from the bound, so that tasks that failed together do not come back
/// together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Jitter {
    /// The bound itself.
    None,
    /// Evenly from half the bound to the bound.
    Equal,
    /// Evenly from zero to the bound.
    Full,
}

/// The policy of a task that does not say: 1 s, doubled, at most an hour, full jitter.
pub const DEFAULT: BackOff = BackOff {
    strategy: Strategy::Exponential,
    base: Duration::from_secs(1),
    factor: 2.0,
    cap: Duration::from_secs(60 * 60),
    jitter: Jitter::Full,
};

impl Default for BackOff {
    fn default() -> Self {
        DEFAULT
    }
}

/// What a task says of its back-off; the installation's settings say the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// How the bound grows with each failure.
    pub strategy: Option<Strategy>,
    /// The bound after the first failure.
    pub base: Option<Duration>,
    /// What an exponential bound is multiplied by with each further failure.
    pub factor: Option<f64>,
    /// What the bound never exceeds.
    pub cap: Option<Duration>,
    /// How the wait is drawn from the bound.
    pub jitter: Option<Jitter>,
}

impl Asked {
    /// The whole policy, with `default` for all that was not said.
    pub fn or(self, default: BackOff) -> BackOff {
        BackOff {
            strategy: self.strategy.unwrap_or(default.strategy),
            base: self.base.unwrap_or(default.base),
            factor: self.factor.unwrap_or(default.factor),
            cap: self.cap.unwrap_or(default.cap),
            jitter: self.jitter.unwrap_or(default.jitter),
        }
    }
}

impl BackOff {
    /// The wait of a task that was taken back: drawn for it alone, although many share a number.
    pub fn wait_for(&self, task: TaskId, attempt: u32, entropy: u64) -> Duration {
        let own = task.as_bytes().last_chunk().copied().map_or(0, u64::from_be_bytes);
        self.wait_or(None, attempt, entropy ^ own)
    }

    /// The wait after failed attempt number `attempt` (the first is 1). `entropy` is one random
    /// number, drawn by the caller.
    pub fn wait(&self, attempt: u32, entropy: u64) -> Duration {
        let bound = self.bound(attempt);
        match self.jitter {
            Jitter::None => bound,
            Jitter::Equal => bound / 2 + draw(bound - bound / 2, entropy),
            Jitter::Full => draw(bound, entropy),
        }
    }

    /// The same, unless the handler asked for a wait of its own.
    pub fn wait_or(&self, asked: Option<Duration>, attempt: u32, entropy: u64) -> Duration {
        asked.map_or_else(|| self.wait(attempt, entropy), |asked| asked.min(limits::BACK_OFF))
    }

    fn bound(&self, attempt: u32) -> Duration {
        let failures = attempt.max(1);
        let grown = match self.strategy {
            Strategy::None => Some(Duration::ZERO),
            Strategy::Fixed => Some(self.base),
            Strategy::Linear => self.base.checked_mul(failures),
            Strategy::Exponential => {
                let exponent = i32::try_from(failures - 1).unwrap_or(i32::MAX);
                let seconds = self.base.as_secs_f64() * self.factor.powi(exponent);
                Duration::try_from_secs_f64(seconds).ok()
            }
        };
        grown.map_or(self.cap, |grown| grown.min(self.cap))
    }
}

/// Evenly from zero to the bound, in whole milliseconds.
pub fn draw(bound: Duration, entropy: u64) -> Duration {
    // Scales 64 random bits to 0 ..= bound without a division.
    let millis = (u128::from(entropy) * (bound.as_millis() + 1)) >> 64;
    Duration::from_millis(u64::try_from(millis).expect("not above the bound"))
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, proptest};

    use super::*;

    fn bounds(policy: BackOff) -> Vec<u64> {
        (1..=6).map(|attempt| policy.bound(attempt).as_secs()).collect()
    }

    fn with(strategy: Strategy) -> BackOff {
        let (base, cap) = (Duration::from_secs(10), Duration::from_secs(45));
        BackOff { strategy, base, cap, ..DEFAULT }
    }

    #[test]
    fn each_strategy_grows_in_its_way_up_to_the_cap() {
        assert_eq!(bounds(with(Strategy::None)), [0; 6]);
        assert_eq!(bounds(with(Strategy::Fixed)), [10; 6]);
        assert_eq!(bounds(with(Strategy::Linear)), [10, 20, 30, 40, 45, 45]);
        assert_eq!(bounds(with(Strategy::Exponential)), [10, 20, 40, 45, 45, 45]);
        assert_eq!(bounds(BackOff { factor: 1.5, ..DEFAULT }), [1, 1, 2, 3, 5, 7]);
        assert_eq!(bounds(DEFAULT), [1, 2, 4, 8, 16, 32]);
        assert_eq!(DEFAULT.bound(u32::MAX), DEFAULT.cap);
    }

    #[test]
    fn jitter_draws_from_its_part_of_the_bound() {
        let at = |jitter, entropy| BackOff { jitter, ..DEFAULT }.wait(3, entropy);
        let seconds = Duration::from_secs;
        assert_eq!((at(Jitter::None, 0), at(Jitter::None, u64::MAX)), (seconds(4), seconds(4)));
        assert_eq!((at(Jitter::Equal, 0), at(Jitter::Equal, u64::MAX)), (seconds(2), seconds(4)));
        assert_eq!((at(Jitter::Full, 0), at(Jitter::Full, u64::MAX)), (seconds(0), seconds(4)));
    }

    proptest! {
        #[test]
        fn a_wait_lies_within_its_bound(
            attempt: u32, entropy: u64, base in 0_u64..100_000, factor in 1.0..100.0,
            cap in 0_u64..1_000_000, strategy in 0_usize..4, jitter in 0_usize..3,
        ) {
            let strategies =
                [Strategy::None, Strategy::Fixed, Strategy::Linear, Strategy::Exponential];
            let policy = BackOff {
                strategy: strategies[strategy],
                base: Duration::from_millis(base),
                factor,
                cap: Duration::from_millis(cap),
                jitter: [Jitter::None, Jitter::Equal, Jitter::Full][jitter],
            };
            prop_assert!(policy.wait(attempt, entropy) <= policy.cap);
            prop_assert!(policy.wait(attempt, entropy) <= policy.bound(attempt));
        }
    }
}
