//! How many leases a worker prefetches, derived from how long its handlers run and how many of
//! them ended recently.
//!
//! A prefetched lease hides the latency of the store, but no other worker can run its task
//! meanwhile. That pays for tasks of a millisecond and not for tasks of a minute. A worker that
//! has finished nothing recently cannot tell how long the next tasks take, and prefetches none.

use std::time::Duration;

use tokio::time::Instant;

use super::Config;

/// How much work, in handler time per slot, may wait in a worker.
const AHEAD: Duration = Duration::from_millis(50);
/// How much work may share one Tokio task.
const CHUNK_TIME: Duration = Duration::from_micros(100);
/// Attempts that may share one Tokio task.
const CHUNK: u64 = 64;
/// Half of the time that counts as recent. Longer than a slow store takes for a batch: otherwise a
/// worker with short tasks would claim fewer and fewer of them at once.
const WINDOW: Duration = Duration::from_millis(500);
/// How many leases may be prefetched for each handler that ended lately. With one for one, a worker would
/// need many small claims to reach its full rate, which costs a drain on PostgreSQL a tenth.
const GROWTH: usize = 8;
/// Each duration moves the mean by one part in this many of their difference.
const WEIGHT: u64 = 16;

/// The mean duration of handlers and the limits derived from it.
#[derive(Debug)]
pub(super) struct PrefetchPolicy {
    config: Config,
    mean_nanos: Option<u64>,
    recent: Recent,
    suspended: bool,
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

impl PrefetchPolicy {
    pub(super) fn new(config: Config) -> Self {
        let recent = Recent { since: Instant::now(), current: 0, before: 0, last: None };
        Self { config, mean_nanos: None, recent, suspended: false }
    }

    /// Changes how many handlers run at once.
    pub(super) fn resize(&mut self, concurrency: usize) {
        self.config.concurrency = concurrency;
    }

    /// Records that a handler ended now, after this time.
    pub(super) fn record(&mut self, took: Duration, now: Instant) {
        self.recent.add(now);
        let took = nanos(took);
        self.mean_nanos = Some(match self.mean_nanos {
            Some(mean) => mean - mean / WEIGHT + took / WEIGHT,
            None => took,
        });
        self.suspended = false;
    }

    /// Stops prefetching until the next handler ends. Called when leases were released because
    /// the running handlers take longer than the mean, which their end corrects.
    pub(super) fn suspend(&mut self) {
        self.suspended = true;
    }

    /// How many leases may wait for a slot: as many as the slots can start within [`AHEAD`] by the
    /// mean duration, and no more than [`GROWTH`] times as many as ended recently.
    pub(super) fn limit(&self, now: Instant) -> usize {
        let Some(mean) = self.mean_nanos.filter(|_| !self.suspended) else { return 0 };
        let budget = nanos(AHEAD).saturating_mul(self.config.concurrency as u64);
        let allowed = usize::try_from(budget / mean.max(1)).unwrap_or(usize::MAX);
        allowed.min(GROWTH.saturating_mul(self.recent.count(now))).min(self.config.prefetch)
    }

    /// Whether a handler has ended within this time.
    pub(super) fn has_ended_within(&self, time: Duration, now: Instant) -> bool {
        self.recent.last.is_some_and(|last| now.duration_since(last) < time)
    }

    /// How many attempts may share one Tokio task, which costs about as much as a very short
    /// handler.
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

    fn policy(concurrency: usize, prefetch: usize) -> PrefetchPolicy {
        PrefetchPolicy::new(Config { concurrency, prefetch })
    }

    /// Ends this many handlers after this time each.
    fn end(policy: &mut PrefetchPolicy, count: usize, took: Duration) {
        (0..count).for_each(|_| policy.record(took, Instant::now()));
    }

    fn limit(policy: &PrefetchPolicy) -> usize {
        policy.limit(Instant::now())
    }

    #[test]
    fn nothing_is_prefetched_before_the_first_handler_ends() {
        assert_eq!(limit(&policy(4, 100)), 0);
        assert_eq!(policy(4, 100).chunk(), 1);
    }

    #[test]
    fn short_tasks_are_prefetched_and_long_ones_are_not() {
        for (micros, ahead, chunk) in
            [(0, 1000, 64), (1, 1000, 64), (10, 1000, 10), (1_000, 500, 1), (50_000, 10, 1)]
        {
            let mut policy = policy(10, 1000);
            end(&mut policy, 2000, Duration::from_micros(micros));
            assert_eq!((limit(&policy), policy.chunk()), (ahead, chunk), "{micros} µs");
        }
        let mut policy = policy(10, 1000);
        end(&mut policy, 10, Duration::from_secs(1));
        assert_eq!(limit(&policy), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_follows_how_many_ended_recently() {
        let mut policy = policy(10, 1000);
        end(&mut policy, 30, Duration::from_micros(1));
        assert_eq!(limit(&policy), 30 * GROWTH);
        tokio::time::advance(WINDOW).await;
        end(&mut policy, 7, Duration::from_micros(1));
        assert_eq!(limit(&policy), 37 * GROWTH);
        tokio::time::advance(WINDOW).await;
        assert_eq!(limit(&policy), 7 * GROWTH);
        tokio::time::advance(WINDOW).await;
        assert_eq!(limit(&policy), 0, "handlers that ended a second ago do not count");
        assert!(!policy.has_ended_within(2 * WINDOW, Instant::now()));
        assert!(policy.has_ended_within(3 * WINDOW, Instant::now()));
    }

    #[test]
    fn the_mean_follows_a_change() {
        let mut policy = policy(10, 1000);
        end(&mut policy, 1, Duration::from_secs(60));
        end(&mut policy, 1000, Duration::from_micros(10));
        assert_eq!(limit(&policy), 1000);
    }

    #[test]
    fn a_suspension_lasts_until_a_handler_ends() {
        let mut policy = policy(10, 1000);
        end(&mut policy, 1, Duration::from_millis(1));
        policy.suspend();
        assert_eq!(limit(&policy), 0);
        end(&mut policy, 1, Duration::from_millis(1));
        assert!(limit(&policy) > 0);
    }
}
