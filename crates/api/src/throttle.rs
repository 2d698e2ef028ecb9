//! Limits how many requests one caller at one address may make in a second.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock as _, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::peer::Peer;

/// Callers that are told apart at once; further ones share one limit.
const CALLERS: usize = 20_000;
/// How often those are forgotten at the most that have not called for a while.
const SWEEP: Duration = Duration::from_secs(1);
/// Stands for all callers beyond [`CALLERS`].
const OTHERS: u64 = 0;

type Limiter =
    RateLimiter<u64, HashMapStateStore<u64>, MonotonicClock, NoOpMiddleware<std::time::Instant>>;

/// The requests of each caller.
pub(crate) struct Throttle {
    limiter: Option<Limiter>,
    clock: MonotonicClock,
    hasher: RandomState,
    swept: Mutex<Option<Instant>>,
}

impl Throttle {
    /// A limit of so many requests a second, twice as many at once; none if absent.
    pub(crate) fn new(per_second: Option<NonZeroU32>) -> Self {
        let quota = |per_second: NonZeroU32| {
            Quota::per_second(per_second).allow_burst(per_second.saturating_mul(TWO))
        };
        let limiter = |per_second| {
            RateLimiter::new(quota(per_second), HashMapStateStore::default(), MonotonicClock)
        };
        Self {
            limiter: per_second.map(limiter),
            clock: MonotonicClock,
            hasher: RandomState::new(),
            swept: Mutex::default(),
        }
    }

    /// Counts a request; how long the caller has to wait, if it may not make it now.
    pub(crate) fn check(&self, caller: &str, peer: Option<Peer>) -> Result<(), Duration> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        let network = peer.map(Peer::network);
        let mut key = self.hasher.hash_one((caller, network));
        if limiter.len() >= CALLERS {
            self.sweep(limiter);
            if limiter.len() >= CALLERS {
                key = OTHERS;
            }
        }
        let refused = |until: governor::NotUntil<_>| until.wait_time_from(self.clock.now());
        limiter.check_key(&key).map_err(refused)
    }

    fn sweep(&self, limiter: &Limiter) {
        let mut swept = self.swept.lock();
        if swept.is_none_or(|at| at.elapsed() >= SWEEP) {
            limiter.retain_recent();
            *swept = Some(Instant::now());
        }
    }
}

const TWO: NonZeroU32 = NonZeroU32::new(2).expect("it is not zero");

#[cfg(test)]
mod tests {
    use super::*;

    fn throttle(per_second: u32) -> Throttle {
        Throttle::new(NonZeroU32::new(per_second))
    }

    #[test]
    fn s20_each_caller_at_each_address_has_its_own_limit() {
        let throttle = throttle(2);
        let here = Some(Peer::at("192.0.2.1".parse().unwrap()));
        let there = Some(Peer::at("192.0.2.2".parse().unwrap()));
        for _ in 0..4 {
            assert_eq!(throttle.check("key:a", here), Ok(()));
        }
        let wait = throttle.check("key:a", here).unwrap_err();
        assert!(wait > Duration::ZERO && wait <= Duration::from_millis(500), "{wait:?}");
        assert_eq!(throttle.check("key:b", here), Ok(()));
        assert_eq!(throttle.check("key:a", there), Ok(()));
    }

    #[test]
    fn s20_callers_beyond_those_that_are_told_apart_share_a_limit() {
        let throttle = throttle(1);
        let refused = (0..CALLERS + 100).filter(|n| throttle.check(&n.to_string(), None).is_err());
        assert!(refused.count() > 50);
        let limiter = throttle.limiter.as_ref().unwrap();
        assert!(limiter.len() <= CALLERS + 1, "{}", limiter.len());
    }

    #[test]
    fn without_a_number_nothing_is_limited() {
        let throttle = throttle(0);
        assert!((0..10_000).all(|_| throttle.check("key:a", None).is_ok()));
    }
}
