//! How many tasks came and started in each queue of late, as far as this node had to do with it.
//! Kept in memory only and per batch, so that nobody pays for it.

use std::collections::HashMap;
use std::time::Duration;

use duly_core::name::{Lane, QueueName, TenantName};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Over how many seconds rates are taken.
const WINDOW: usize = 60;
/// Queues remembered before those are looked for in which nothing happens any more.
const TIDY: usize = 1024;

/// Tasks per second over the last minute.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Submitted through this node.
    pub submitted: f64,
    /// Granted through this node.
    pub started: f64,
}

/// What happened to tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
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
    queues: HashMap<(TenantName, QueueName), Minute>,
    tidy_at: usize,
}

#[derive(Debug)]
struct Minute {
    submitted: Ring,
    started: Ring,
}

/// Counts of the last seconds; the one of second `n` stands at `n` modulo their number.
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
    /// Counts tasks of these lanes. Neighbours in one queue are looked up once.
    pub(crate) fn count<'a>(&self, what: What, lanes: impl IntoIterator<Item = &'a Lane>) {
        let mut lanes = lanes.into_iter();
        let Some(mut lane) = lanes.next() else { return };
        let (second, mut count) = (self.second(), 1);
        let mut state = self.state.lock();
        for next in lanes {
            if next.queue == lane.queue && next.tenant == lane.tenant {
                count += 1;
            } else {
                state.add(what, lane, second, count);
                (lane, count) = (next, 1);
            }
        }
        state.add(what, lane, second, count);
    }

    pub(crate) fn of(&self, tenant: &TenantName, queue: &QueueName) -> Rate {
        let second = self.second();
        // A server that has just started has not seen a whole minute.
        let window = self.start.elapsed().clamp(Duration::from_secs(1), WINDOW_TIME);
        let per_second = |count: u64| count as f64 / window.as_secs_f64();
        let state = self.state.lock();
        let minute = state.queues.get(&(tenant.clone(), queue.clone()));
        minute.map_or_else(Rate::default, |minute| Rate {
            submitted: per_second(minute.submitted.sum(second)),
            started: per_second(minute.started.sum(second)),
        })
    }

    fn second(&self) -> u64 {
        self.start.elapsed().as_secs()
    }
}

const WINDOW_TIME: Duration = Duration::from_secs(WINDOW as u64);

impl State {
    fn add(&mut self, what: What, lane: &Lane, second: u64, count: u32) {
        if self.queues.len() >= self.tidy_at {
            let is_busy =
                |minute: &Minute| minute.submitted.sum(second) + minute.started.sum(second) > 0;
            self.queues.retain(|_, minute| is_busy(minute));
            self.tidy_at = TIDY.max(2 * self.queues.len());
        }
        let key = (lane.tenant.clone(), lane.queue.clone());
        let new = || Minute { submitted: Ring::new(second), started: Ring::new(second) };
        let minute = self.queues.entry(key).or_insert_with(new);
        match what {
            What::Submitted => minute.submitted.add(second, count),
            What::Started => minute.started.add(second, count),
        }
    }
}

impl Ring {
    fn new(second: u64) -> Self {
        Self { counts: [0; WINDOW], last: second }
    }

    fn add(&mut self, second: u64, count: u32) {
        for passed in self.last + 1..=second.min(self.last + WINDOW as u64) {
            self.counts[place(passed)] = 0;
        }
        // Two threads may come in the wrong order around the turn of a second.
        self.last = self.last.max(second);
        let slot = &mut self.counts[place(self.last)];
        *slot = slot.saturating_add(count);
    }

    /// All that is not older than the window.
    fn sum(&self, now: u64) -> u64 {
        let oldest = now.saturating_sub(WINDOW as u64 - 1);
        (oldest..=self.last).map(|second| u64::from(self.counts[place(second)])).sum()
    }
}

fn place(second: u64) -> usize {
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
        rates.count(What::Submitted, &lanes);
        rates.count(What::Started, &lanes[..1]);
        assert_eq!(rate(&rates, "mail"), Rate { submitted: 3.0 / 60.0, started: 1.0 / 60.0 });
        assert_eq!(rate(&rates, "video").submitted, 1.0 / 60.0);
        tokio::time::advance(Duration::from_secs(59)).await;
        rates.count(What::Submitted, &lanes[..1]);
        assert_eq!(rate(&rates, "mail").submitted, 4.0 / 60.0);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(rate(&rates, "mail").submitted, 1.0 / 60.0);
        tokio::time::advance(Duration::from_secs(600)).await;
        assert_eq!(rate(&rates, "mail"), Rate::default());
        rates.count(What::Submitted, &lanes[..1]);
        assert_eq!(rate(&rates, "mail").submitted, 1.0 / 60.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_server_divides_by_the_time_it_has_seen() {
        let rates = Rates::default();
        rates.count(What::Submitted, &[lane("mail"), lane("mail")]);
        assert_eq!(rate(&rates, "mail").submitted, 2.0);
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(rate(&rates, "mail").submitted, 0.5);
        assert_eq!(rate(&rates, "nowhere"), Rate::default());
    }

    #[tokio::test(start_paused = true)]
    async fn queues_in_which_nothing_happens_are_forgotten() {
        let rates = Rates::default();
        for number in 0..TIDY {
            rates.count(What::Submitted, &[lane(&format!("q{number}"))]);
        }
        tokio::time::advance(Duration::from_secs(61)).await;
        rates.count(What::Submitted, &[lane("mail")]);
        assert_eq!(rates.state.lock().queues.len(), 1);
    }
}
