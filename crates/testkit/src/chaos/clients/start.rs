//! When a task of a client is to start: at once, at an instant, or some time after its submit.

use duly_client::wire::SubmitRequest;
use duly_core::time::Timestamp;
use rand::Rng as _;
use rand::rngs::StdRng;

use crate::history::Call;
use crate::journal::real_ns;

/// Tasks with `runAt`, out of a thousand.
const AT: u32 = 100;
/// Tasks with `delaySeconds`, with both `delaySeconds` and `jitterSeconds`, and with
/// `jitterSeconds` alone, out of a thousand.
const DELAYED: u32 = 150;
const DELAYED_WITH_JITTER: u32 = 50;
const JITTER: u32 = 30;
/// How far away an instant or the end of a delay is, in milliseconds: shorter and longer than the
/// faults that hold a server up.
const AWAY: std::ops::Range<u32> = 50..3_000;
/// The largest jitter, in milliseconds.
const LARGEST_JITTER: std::ops::Range<u32> = 1..500;

/// The start that a client asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Start {
    /// `runAt`, in milliseconds of the real-time clock.
    run_at: Option<i64>,
    /// `delaySeconds`: whole milliseconds, which is what servers keep.
    delay_seconds: Option<f64>,
    /// `jitterSeconds`: the same.
    jitter_seconds: Option<f64>,
}

impl Start {
    /// Draws one.
    pub(super) fn draw(random: &mut StdRng) -> Self {
        let mut start = Self::default();
        let kind = random.random_range(0..1_000);
        let away = random.random_range(AWAY);
        let jitter = random.random_range(LARGEST_JITTER);
        let mut limit = AT;
        if kind < limit {
            let now = i64::try_from(real_ns() / 1_000_000).expect("milliseconds fit");
            start.run_at = Some(now + i64::from(away));
            return start;
        }
        limit += DELAYED + DELAYED_WITH_JITTER;
        if kind < limit {
            start.delay_seconds = Some(f64::from(away) / 1e3);
        }
        if (limit - DELAYED_WITH_JITTER..limit + JITTER).contains(&kind) {
            start.jitter_seconds = Some(f64::from(jitter) / 1e3);
        }
        start
    }

    /// Asks a server for it.
    pub(super) fn ask(self, task: &mut SubmitRequest) {
        task.run_at = self.run_at.map(Timestamp::from_millis);
        task.delay_seconds = self.delay_seconds;
        task.jitter_seconds = self.jitter_seconds;
    }

    /// Writes it down.
    pub(super) fn note(self, call: Call) -> Call {
        let Self { run_at, delay_seconds, jitter_seconds } = self;
        Call { run_at, delay_seconds, jitter_seconds, ..call }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    #[test]
    fn every_kind_of_start_is_drawn() {
        let mut random = StdRng::seed_from_u64(7);
        let mut counts = std::collections::BTreeMap::<_, u32>::new();
        for _ in 0..10_000 {
            let start = Start::draw(&mut random);
            let kinds = [
                start.run_at.is_some(),
                start.delay_seconds.is_some(),
                start.jitter_seconds.is_some(),
            ];
            *counts.entry(kinds).or_default() += 1;
        }
        let kinds: Vec<_> = counts.keys().copied().collect();
        let expected = [
            [false, false, false],
            [false, false, true],
            [false, true, false],
            [false, true, true],
            [true, false, false],
        ];
        assert_eq!(kinds, expected, "{counts:?}");
        assert!(counts.values().all(|count| *count > 200), "{counts:?}");
    }
}
