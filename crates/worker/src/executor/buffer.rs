//! Leases that wait for a running slot, in order of arrival.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::lease::{Finish, Lease};
use duly_core::ports::work_source::TakenBack;
use tokio::time::{Instant, Sleep};

/// How long a lease may wait for a slot.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(1);
/// How long it may wait if another worker is ready to run it, and how often to check that.
pub(super) const MAX_WAIT_IF_WANTED: Duration = Duration::from_millis(100);
/// A timer that fires this late shows that the process was paused, not that handlers are long.
const LATE: Duration = Duration::from_millis(50);

/// The waiting leases, oldest first.
#[derive(Default)]
pub(super) struct Buffer {
    waiting: VecDeque<Waiting>,
    /// Fires when the lease that was the oldest may have waited too long. It is set again only
    /// then, so that leases that start in time never touch it.
    timer: Option<Pin<Box<Sleep>>>,
    /// When the timer last fired.
    fired_at: Option<Instant>,
}

struct Waiting {
    lease: Lease,
    since: Instant,
}

impl Buffer {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn extend(&mut self, leases: Vec<Lease>) {
        let since = Instant::now();
        self.waiting.extend(leases.into_iter().map(|lease| Waiting { lease, since }));
    }

    /// Takes the oldest leases.
    pub(super) fn take(&mut self, count: usize) -> impl Iterator<Item = Lease> {
        self.waiting.drain(..count).map(|waiting| waiting.lease)
    }

    /// Takes the newest leases, at most this many.
    pub(super) fn take_newest(&mut self, count: usize) -> impl Iterator<Item = Lease> {
        let kept = self.waiting.len().saturating_sub(count);
        self.waiting.drain(kept..).map(|waiting| waiting.lease)
    }

    /// Removes leases that were taken back. Returns their releases.
    pub(super) fn remove_taken_back(&mut self, gone: &[TakenBack]) -> Vec<Finish> {
        let mut releases = Vec::new();
        self.waiting.retain(|Waiting { lease, .. }| {
            let covers = |gone: &TakenBack| gone.task == lease.task && lease.epoch <= gone.epoch;
            let is_gone = gone.iter().any(covers);
            if is_gone {
                releases.push(lease.release());
            }
            !is_gone
        });
        releases
    }

    /// The tasks of the waiting leases.
    pub(super) fn tasks(&self) -> Vec<TaskId> {
        self.waiting.iter().map(|waiting| waiting.lease.task).collect()
    }

    /// Takes the leases that have waited for this time and match the condition.
    pub(super) fn take_overdue(
        &mut self,
        max_wait: Duration,
        condition: impl Fn(&Lease) -> bool,
    ) -> Vec<Lease> {
        let now = Instant::now();
        let mut overdue = Vec::new();
        self.waiting.retain(|Waiting { lease, since }| {
            let is_overdue = *since + max_wait <= now && condition(lease);
            if is_overdue {
                overdue.push(lease.clone());
            }
            !is_overdue
        });
        overdue
    }

    /// Waits until leases may be overdue; for ever while there are none.
    pub(super) async fn overdue(&mut self) {
        loop {
            if let (None, Some(oldest)) = (&self.timer, self.waiting.front()) {
                let since = self.fired_at.map_or(oldest.since, |at| at.max(oldest.since));
                self.timer = Some(Box::pin(tokio::time::sleep_until(since + MAX_WAIT_IF_WANTED)));
            }
            let Some(timer) = &mut self.timer else { return std::future::pending().await };
            timer.as_mut().await;
            let (now, due) = (Instant::now(), timer.deadline());
            (self.timer, self.fired_at) = (None, Some(now));
            if now < due + LATE {
                return;
            }
        }
    }
}
