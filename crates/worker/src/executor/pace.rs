//! How far ahead a worker takes leases, learnt from how long its handlers run.
//!
//! A lease taken ahead hides the way to the store, but nobody else can run its task meanwhile.
//! That is a good bargain for tasks of a millisecond and a bad one for tasks of a minute.

use std::time::Duration;

use super::Config;

/// How much work may wait in a worker.
const AHEAD: Duration = Duration::from_millis(50);
/// How much work may share one task of the runtime.
const CHUNK_TIME: Duration = Duration::from_micros(100);
/// Attempts that may share one task of the runtime.
const CHUNK: u64 = 64;
/// Each duration moves the mean by this fraction of their difference.
const WEIGHT: u64 = 16;

/// The mean duration of handlers and what follows from it.
#[derive(Debug)]
pub(super) struct Pace {
    config: Config,
    mean_nanos: Option<u64>,
    halted: bool,
}

impl Pace {
    pub(super) fn new(config: Config) -> Self {
        Self { config, mean_nanos: None, halted: false }
    }

    /// So many handlers may run from now on.
    pub(super) fn resize(&mut self, concurrency: usize) {
        self.config.concurrency = concurrency;
    }

    /// A handler ended after this time.
    pub(super) fn ended(&mut self, took: Duration) {
        let took = nanos(took);
        self.mean_nanos = Some(match self.mean_nanos {
            Some(mean) => mean - mean / WEIGHT + took / WEIGHT,
            None => took,
        });
        self.halted = false;
    }

    /// Leases had to be handed back: the handlers that run now take longer than the mean says,
    /// so nothing is taken ahead until one of them ends and corrects it.
    pub(super) fn halt(&mut self) {
        self.halted = true;
    }

    /// How many leases may wait for a handler's place.
    pub(super) fn prefetch(&self) -> usize {
        let concurrency = self.config.concurrency;
        let allowed = match self.mean_nanos {
            _ if self.halted => 0,
            None => concurrency,
            Some(mean) => {
                let budget = nanos(AHEAD).saturating_mul(concurrency as u64);
                usize::try_from(budget / mean.max(1)).unwrap_or(usize::MAX)
            }
        };
        allowed.min(self.config.prefetch)
    }

    /// How many attempts may share one task of the runtime, which costs about as much as a very
    /// short handler.
    pub(super) fn chunk(&self) -> usize {
        let chunk = match self.mean_nanos {
            Some(mean) => (nanos(CHUNK_TIME) / mean.max(1)).clamp(1, CHUNK),
            None => 1,
        };
        usize::try_from(chunk).expect("at most CHUNK")
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(concurrency: usize, prefetch: usize) -> Pace {
        Pace::new(Config { concurrency, prefetch })
    }

    #[test]
    fn before_anything_is_known_one_round_is_taken_ahead() {
        assert_eq!(pace(4, 100).prefetch(), 4);
        assert_eq!(pace(100, 4).prefetch(), 4);
        assert_eq!(pace(4, 100).chunk(), 1);
    }

    #[test]
    fn short_tasks_are_taken_ahead_and_long_ones_are_not() {
        for (micros, ahead, chunk) in
            [(0, 1000, 64), (1, 1000, 64), (10, 1000, 10), (1_000, 500, 1), (50_000, 10, 1)]
        {
            let mut pace = pace(10, 1000);
            pace.ended(Duration::from_micros(micros));
            assert_eq!((pace.prefetch(), pace.chunk()), (ahead, chunk), "{micros} µs");
        }
        let mut pace = pace(10, 1000);
        pace.ended(Duration::from_secs(1));
        assert_eq!(pace.prefetch(), 0);
    }

    #[test]
    fn the_mean_follows_a_change() {
        let mut pace = pace(10, 1000);
        pace.ended(Duration::from_secs(60));
        for _ in 0..300 {
            pace.ended(Duration::from_micros(10));
        }
        assert_eq!(pace.prefetch(), 1000);
    }

    #[test]
    fn a_halt_lasts_until_a_handler_ends() {
        let mut pace = pace(10, 1000);
        pace.ended(Duration::from_millis(1));
        pace.halt();
        assert_eq!(pace.prefetch(), 0);
        pace.ended(Duration::from_millis(1));
        assert!(pace.prefetch() > 0);
    }
}
