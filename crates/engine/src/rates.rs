//! How many tasks this node submitted and started in each queue during the last minute. Kept in
//! memory and counted per batch, so that it costs almost nothing.

use std::collections::HashMap;
use std::time::Duration;

use duly_core::name::{Lane, QueueName, TenantName};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Over how many seconds rates are taken.
const WINDOW: usize = 60;
/// Queues kept before idle ones are removed.
const TIDY: usize = 1024;

/// Tasks per second over the last minute.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Submitted through this node.
    pub submitted: f64,
    /// Granted through this node.
    pub started: f64,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    Submitted,
    Started,
}

#[derive(Debug)]
pub(crate) struct Rates {
    start: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    queues: HashMap<(TenantName, QueueName), QueueCounts>,
    tidy_at: usize,
}

#[derive(Debug)]
struct QueueCounts {
    submitted: Ring,
    started: Ring,
}

/// Counts of the last seconds; that of second `n` is at index `n % WINDOW`.
#[derive(Debug)]
struct Ring {
    counts: [u32; WINDOW],
    last: u64,
}

impl Default for Rates {
    fn default() -> Self {
        let state = State { queues: HashMap::new(), tidy_at: TIDY };
        Self { start: Instant::now(), state: Mutex::new(state) }
    }
}

impl Rates {
    /// Counts tasks of these lanes. Consecutive tasks of one queue need one look-up.
    pub(crate) fn count<'a>(&self, counter: Counter, lanes: impl IntoIterator<Item = &'a Lane>) {
        let mut lanes = lanes.into_iter();
        let Some(mut lane) = lanes.next() else { return };
        let (second, mut count) = (self.second(), 1);
        let mut state = self.state.lock();
        for next in lanes {
            if next.queue == lane.queue && next.tenant == lane.tenant {
                count += 1;
            } else {
                state.add(counter, lane, second, count);
                (lane, count) = (next, 1);
            }
        }
        state.add(counter, lane, second, count);
    }

    pub(crate) fn of(&self, tenant: &TenantName, queue: &QueueName) -> Rate {
        let second = self.second();
        // A server that has just started divides by the time since its start.
        let window = self.start.elapsed().clamp(Duration::from_secs(1), WINDOW_TIME);
        let per_second = |count: u64| count as f64 / window.as_secs_f64();
        let state = self.state.lock();
        let counts = state.queues.get(&(tenant.clone(), queue.clone()));
        counts.map_or_else(Rate::default, |counts| Rate {
            submitted: per_second(counts.submitted.sum(second)),
            started: per_second(counts.started.sum(second)),
        })
    }

    fn second(&self) -> u64 {
        self.start.elapsed().as_secs()
    }
}

const WINDOW_TIME: Duration = Duration::from_secs(WINDOW as u64);

impl State {
    fn add(&mut self, counter: Counter, lane: &Lane, second: u64, count: u32) {
        if self.queues.len() >= self.tidy_at {
            let is_busy = |counts: &QueueCounts| {
                counts.submitted.sum(second) + counts.started.sum(second) > 0
            };
            self.queues.retain(|_, counts| is_busy(counts));
            self.tidy_at = TIDY.max(2 * self.queues.len());
        }
        let key = (lane.tenant.clone(), lane.queue.clone());
        let new = || QueueCounts { submitted: Ring::new(second), started: Ring::new(second) };
        let counts = self.queues.entry(key).or_insert_with(new);
        match counter {
            Counter::Submitted => counts.submitted.add(second, count),
            Counter::Started => counts.started.add(second, count),
        }
    }
}

impl Ring {
    fn new(second: u64) -> Self {
        Self { counts: [0; WINDOW], last: second }
    }

    fn add(&mut self, second: u64, count: u32) {
        for passed in self.last + 1..=second.min(self.last + WINDOW as u64) {
            self.counts[index(passed)] = 0;
        }
        // Two threads may arrive out of order at the turn of a second.
        self.last = self.last.max(second);
        let slot = &mut self.counts[index(self.last)];
        *slot = slot.saturating_add(count);
    }

    /// The counts within the window.
    fn sum(&self, now: u64) -> u64 {
        let oldest = now.saturating_sub(WINDOW as u64 - 1);
        (oldest..=self.last).map(|second| u64::from(self.counts[index(second)])).sum()
    }
}

fn index(second: u64) -> usize {
    usize::try_from(second % WINDOW as u64).expect("smaller than the window")
}

#[cfg(test)]
mod tests {
    use duly_core::name::TypeName;

    use super::*;

    fn lane(queue: &str) -> Lane {
        Lane {
            tenant: TenantName::default_tenant(),
            queue: QueueName::new(queue).unwrap(),
            task_type: TypeName::new("a").unwrap(),
        }
    }

    fn rate(rates: &Rates, queue: &str) -> Rate {
        rates.of(&TenantName::default_tenant(), &QueueName::new(queue).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn rates_are_those_of_the_last_minute() {
        let rates = Rates::default();
        tokio::time::advance(Duration::from_secs(100)).await;
        let lanes = [lane("mail"), lane("mail"), lane("video"), lane("mail")];
        rates.count(Counter::Submitted, &lanes);
        rates.count(Counter::Started, &lanes[..1]);
        assert_eq!(rate(&rates, "mail"), Rate { submitted: 3.0 / 60.0, started: 1.0 / 60.0 });
        assert_eq!(rate(&rates, "video").submitted, 1.0 / 60.0);
        tokio::time::advance(Duration::from_secs(59)).await;
        rates.count(Counter::Submitted, &lanes[..1]);
        assert_eq!(rate(&rates, "mail").submitted, 4.0 / 60.0);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(rate(&rates, "mail").submitted, 1.0 / 60.0);
        tokio::time::advance(Duration::from_secs(600)).await;
        assert_eq!(rate(&rates, "mail"), Rate::default());
        rates.count(Counter::Submitted, &lanes[..1]);
        assert_eq!(rate(&rates, "mail").submitted, 1.0 / 60.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_server_divides_by_the_time_it_has_seen() {
        let rates = Rates::default();
        rates.count(Counter::Submitted, &[lane("mail"), lane("mail")]);
        assert_eq!(rate(&rates, "mail").submitted, 2.0);
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(rate(&rates, "mail").submitted, 0.5);
        assert_eq!(rate(&rates, "nowhere"), Rate::default());
    }

    #[tokio::test(start_paused = true)]
    async fn queues_in_which_nothing_happens_are_forgotten() {
        let rates = Rates::default();
        for number in 0..TIDY {
            rates.count(Counter::Submitted, &[lane(&format!("q{number}"))]);
        }
        tokio::time::advance(Duration::from_secs(61)).await;
        rates.count(Counter::Submitted, &[lane("mail")]);
        assert_eq!(rates.state.lock().queues.len(), 1);
    }
}
