//! Leases that wait for a handler's place, in the order they came.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::lease::{Finish, Lease};
use duly_core::ports::work_source::TakenBack;
use tokio::time::{Instant, Sleep};

/// How long a lease may wait for a handler's place.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// How long it may wait where another worker is ready to run it, and how often that is looked at.
pub(super) const SHORT_PATIENCE: Duration = Duration::from_millis(100);
/// A look that comes so much too late tells of a process that stood still, not of long handlers.
const LATE: Duration = Duration::from_millis(50);

/// The waiting leases, oldest first.
#[derive(Default)]
pub(super) struct Buffer {
    waiting: VecDeque<Waiting>,
    /// Goes off when what was the oldest lease may have waited too long. It is set again only then,
    /// so that the stream of leases that do start in time never touches it.
    timer: Option<Pin<Box<Sleep>>>,
    /// When it last went off.
    looked: Option<Instant>,
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

    /// Takes the newest leases, as many as there are up to this number.
    pub(super) fn take_newest(&mut self, count: usize) -> impl Iterator<Item = Lease> {
        let kept = self.waiting.len().saturating_sub(count);
        self.waiting.drain(kept..).map(|waiting| waiting.lease)
    }

    /// Takes the leases that are gone, and says what to tell of them.
    pub(super) fn give_up(&mut self, gone: &[TakenBack]) -> Vec<Finish> {
        let mut given_up = Vec::new();
        self.waiting.retain(|Waiting { lease, .. }| {
            let covers = |gone: &TakenBack| gone.task == lease.task && lease.epoch <= gone.epoch;
            let is_gone = gone.iter().any(covers);
            if is_gone {
                given_up.push(lease.release());
            }
            !is_gone
        });
        given_up
    }

    /// The tasks that wait.
    pub(super) fn tasks(&self) -> Vec<TaskId> {
        self.waiting.iter().map(|waiting| waiting.lease.task).collect()
    }

    /// Takes the leases that have waited for this time, as far as they are to be given up.
    pub(super) fn take_overdue(
        &mut self,
        patience: Duration,
        is_given_up: impl Fn(&Lease) -> bool,
    ) -> Vec<Lease> {
        let now = Instant::now();
        let mut gone = Vec::new();
        self.waiting.retain(|Waiting { lease, since }| {
            let is_gone = *since + patience <= now && is_given_up(lease);
            if is_gone {
                gone.push(lease.clone());
            }
            !is_gone
        });
        gone
    }

    /// Waits until leases may have waited too long, for ever while there are none.
    pub(super) async fn impatient(&mut self) {
        loop {
            if let (None, Some(oldest)) = (&self.timer, self.waiting.front()) {
                let since = self.looked.map_or(oldest.since, |looked| looked.max(oldest.since));
                self.timer = Some(Box::pin(tokio::time::sleep_until(since + SHORT_PATIENCE)));
            }
            let Some(timer) = &mut self.timer else { return std::future::pending().await };
            timer.as_mut().await;
            let (now, due) = (Instant::now(), timer.deadline());
            (self.timer, self.looked) = (None, Some(now));
            if now < due + LATE {
                return;
            }
        }
    }
}
