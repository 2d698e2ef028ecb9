//! Leases that wait for a handler's place, in the order they came.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::lease::{Finish, Lease};
use duly_core::ports::work_source::TakenBack;
use tokio::time::{Instant, Sleep};

/// How long a lease may wait. Another worker may have a place for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// The waiting leases, oldest first.
#[derive(Default)]
pub(super) struct Buffer {
    waiting: VecDeque<Waiting>,
    /// Goes off when what was the oldest lease has waited too long. It is set again only then,
    /// so that the stream of leases that do start in time never touches it.
    timer: Option<Pin<Box<Sleep>>>,
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

    /// How many leases have waited too long.
    pub(super) fn overdue(&self) -> usize {
        let now = Instant::now();
        self.waiting.partition_point(|waiting| waiting.since + PATIENCE <= now)
    }

    /// Waits until leases may be overdue, for ever while there are none.
    pub(super) async fn impatient(&mut self) {
        if let (None, Some(oldest)) = (&self.timer, self.waiting.front()) {
            self.timer = Some(Box::pin(tokio::time::sleep_until(oldest.since + PATIENCE)));
        }
        let Some(timer) = &mut self.timer else { return std::future::pending().await };
        timer.as_mut().await;
        self.timer = None;
    }
}
