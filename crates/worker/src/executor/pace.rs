//! How far ahead a worker takes leases, learnt from how long its handlers run and how many of them
//! ended lately.
//!
//! A lease taken ahead hides the way to the store, but no other worker can run its task meanwhile.
//! That is a good bargain for tasks of a millisecond and a bad one for tasks of a minute. A worker
//! that has finished nothing lately knows nothing of the tasks to come, and takes none ahead.

use std::time::Duration;

use tokio::time::Instant;

use super::Config;

/// How much work may wait in a worker.
const AHEAD: Duration = Duration::from_millis(50);
/// How much work may share one task of the runtime.
const CHUNK_TIME: Duration = Duration::from_micros(100);
/// Attempts that may share one task of the runtime.
const CHUNK: u64 = 64;
/// Half of the time that counts as lately: longer than a slow store takes for a batch, or a worker
/// with short tasks would claim less and less of them at once.
const WINDOW: Duration = Duration::from_millis(500);
/// Each duration moves the mean by this fraction of their difference.
const WEIGHT: u64 = 16;

/// The mean duration of handlers and what follows from it.
#[derive(Debug)]
pub(super) struct Pace {
    config: Config,
    mean_nanos: Option<u64>,
    recent: Recent,
    halted: bool,
}

/// Handlers that ended in the current window of time and in the one before.
#[derive(Debug)]
struct Recent {
    since: Instant,
    current: usize,
    before: usize,
    last: Option<Instant>,
}

impl Recent {
    fn add(&mut self, now: Instant) {
        if now.duration_since(self.since) >= WINDOW {
            let follows = now.duration_since(self.since) < 2 * WINDOW;
            self.before = if follows { self.current } else { 0 };
            (self.since, self.current) = (now, 0);
        }
        self.current += 1;
        self.last = Some(now);
    }

    fn count(&self, now: Instant) -> usize {
        match now.duration_since(self.since) {
            age if age < WINDOW => self.current + self.before,
            age if age < 2 * WINDOW => self.current,
            _ => 0,
        }
    }
}

impl Pace {
    pub(super) fn new(config: Config) -> Self {
        let recent = Recent { since: Instant::now(), current: 0, before: 0, last: None };
        Self { config, mean_nanos: None, recent, halted: false }
    }

    /// So many handlers may run from now on.
    pub(super) fn resize(&mut self, concurrency: usize) {
        self.config.concurrency = concurrency;
    }

    /// A handler ended now, after this time.
    pub(super) fn ended(&mut self, took: Duration, now: Instant) {
        self.recent.add(now);
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

    /// How many leases may wait for a handler's place: as many as the handlers can start within
    /// [`AHEAD`] by their mean duration, and no more than have ended lately.
    pub(super) fn prefetch(&self, now: Instant) -> usize {
        let Some(mean) = self.mean_nanos.filter(|_| !self.halted) else { return 0 };
        let budget = nanos(AHEAD).saturating_mul(self.config.concurrency as u64);
        let allowed = usize::try_from(budget / mean.max(1)).unwrap_or(usize::MAX);
        allowed.min(self.recent.count(now)).min(self.config.prefetch)
    }

    /// Whether a handler has ended within this time.
    pub(super) fn has_ended_within(&self, time: Duration, now: Instant) -> bool {
        self.recent.last.is_some_and(|last| now.duration_since(last) < time)
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

    /// Ends this many handlers after this time each.
    fn end(pace: &mut Pace, count: usize, took: Duration) {
        (0..count).for_each(|_| pace.ended(took, Instant::now()));
    }

    fn prefetch(pace: &Pace) -> usize {
        pace.prefetch(Instant::now())
    }

    #[test]
    fn before_anything_is_known_nothing_is_taken_ahead() {
        assert_eq!(prefetch(&pace(4, 100)), 0);
        assert_eq!(pace(4, 100).chunk(), 1);
    }

    #[test]
    fn short_tasks_are_taken_ahead_and_long_ones_are_not() {
        for (micros, ahead, chunk) in
            [(0, 1000, 64), (1, 1000, 64), (10, 1000, 10), (1_000, 500, 1), (50_000, 10, 1)]
        {
            let mut pace = pace(10, 1000);
            end(&mut pace, 2000, Duration::from_micros(micros));
            assert_eq!((prefetch(&pace), pace.chunk()), (ahead, chunk), "{micros} µs");
        }
        let mut pace = pace(10, 1000);
        end(&mut pace, 10, Duration::from_secs(1));
        assert_eq!(prefetch(&pace), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_is_taken_ahead_than_has_ended_lately() {
        let mut pace = pace(10, 1000);
        end(&mut pace, 30, Duration::from_micros(1));
        assert_eq!(prefetch(&pace), 30);
        tokio::time::advance(WINDOW).await;
        end(&mut pace, 7, Duration::from_micros(1));
        assert_eq!(prefetch(&pace), 37);
        tokio::time::advance(WINDOW).await;
        assert_eq!(prefetch(&pace), 7);
        tokio::time::advance(WINDOW).await;
        assert_eq!(prefetch(&pace), 0, "what was true a second ago says nothing");
        assert!(!pace.has_ended_within(2 * WINDOW, Instant::now()));
        assert!(pace.has_ended_within(3 * WINDOW, Instant::now()));
    }

    #[test]
    fn the_mean_follows_a_change() {
        let mut pace = pace(10, 1000);
        end(&mut pace, 1, Duration::from_secs(60));
        end(&mut pace, 1000, Duration::from_micros(10));
        assert_eq!(prefetch(&pace), 1000);
    }

    #[test]
    fn a_halt_lasts_until_a_handler_ends() {
        let mut pace = pace(10, 1000);
        end(&mut pace, 1, Duration::from_millis(1));
        pace.halt();
        assert_eq!(prefetch(&pace), 0);
        end(&mut pace, 1, Duration::from_millis(1));
        assert!(prefetch(&pace) > 0);
    }
}
