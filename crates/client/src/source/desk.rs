//! Where leases arrive and claims wait for them. A claim that is dropped leaves behind the
//! request that was made for it; what that brings is kept for the next claim, or handed back if
//! none comes.

use std::collections::VecDeque;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::lease::Lease;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long leases are kept while nobody asks for them.
const KEEP: Duration = Duration::from_secs(1);

/// What the loop of claims has to do next.
#[derive(Debug, PartialEq)]
pub(super) enum Errand {
    /// Ask the server for this many.
    Claim(usize),
    /// Hand these back.
    Release(Vec<Lease>),
}

/// Claims that wait and leases that are kept.
#[derive(Default)]
pub(super) struct Desk {
    state: Mutex<State>,
    /// Wakes the loop of claims.
    asked: Notify,
    /// Wakes the claims.
    arrived: Notify,
}

#[derive(Default)]
struct State {
    /// Places that claims wait to fill.
    wanted: usize,
    kept: VecDeque<Kept>,
    draining: bool,
}

struct Kept {
    lease: Lease,
    since: Instant,
}

impl Desk {
    /// Waits for leases and takes at most this many.
    pub(super) async fn claim(&self, max: usize) -> Vec<Lease> {
        let _asking = Asking::new(self, max);
        loop {
            // Armed before the look, so that nothing in between is missed.
            let arrived = self.arrived.notified();
            let leases = self.take(max);
            if !leases.is_empty() {
                return leases;
            }
            arrived.await;
        }
    }

    /// Leases have arrived.
    pub(super) fn keep(&self, leases: Vec<Lease>) {
        let since = Instant::now();
        self.state.lock().kept.extend(leases.into_iter().map(|lease| Kept { lease, since }));
        self.arrived.notify_waiters();
        self.asked.notify_one();
    }

    /// What is kept is lost.
    pub(super) fn forget(&self) -> Vec<Lease> {
        let kept = std::mem::take(&mut self.state.lock().kept);
        self.asked.notify_one();
        kept.into_iter().map(|kept| kept.lease).collect()
    }

    /// The tasks that nobody has taken yet.
    pub(super) fn kept(&self) -> Vec<TaskId> {
        self.state.lock().kept.iter().map(|kept| kept.lease.task).collect()
    }

    /// Whether the server wants this worker to take no more. Answers whether that is new.
    pub(super) fn drain(&self, draining: bool) -> bool {
        let changed = std::mem::replace(&mut self.state.lock().draining, draining) != draining;
        self.asked.notify_one();
        changed
    }

    /// Waits until there is something to do. For one caller at a time.
    pub(super) async fn errand(&self) -> Errand {
        loop {
            let overdue = match self.state.lock().errand() {
                Ok(errand) => return errand,
                Err(overdue) => overdue,
            };
            match overdue {
                None => self.asked.notified().await,
                Some(at) => {
                    let _ = tokio::time::timeout_at(at, self.asked.notified()).await;
                }
            }
        }
    }

    fn take(&self, max: usize) -> Vec<Lease> {
        let mut state = self.state.lock();
        let count = max.min(state.kept.len());
        state.kept.drain(..count).map(|kept| kept.lease).collect()
    }
}

impl State {
    /// What to do now, or when to look again.
    fn errand(&mut self) -> Result<Errand, Option<Instant>> {
        match self.kept.front() {
            None if self.wanted > 0 && !self.draining => Ok(Errand::Claim(self.wanted)),
            Some(oldest) if self.wanted == 0 => {
                let until = oldest.since + KEEP;
                if Instant::now() < until {
                    return Err(Some(until));
                }
                Ok(Errand::Release(self.kept.drain(..).map(|kept| kept.lease).collect()))
            }
            _ => Err(None),
        }
    }
}

/// A claim that waits.
struct Asking<'a> {
    desk: &'a Desk,
    max: usize,
}

impl<'a> Asking<'a> {
    fn new(desk: &'a Desk, max: usize) -> Self {
        desk.state.lock().wanted += max;
        desk.asked.notify_one();
        Self { desk, max }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.desk.state.lock().wanted -= self.max;
        self.desk.asked.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::lease;

    #[tokio::test(start_paused = true)]
    async fn leases_wait_a_second_for_the_next_claim() {
        let desk = Desk::default();
        desk.keep(vec![lease(1), lease(2), lease(3)]);
        assert_eq!(desk.claim(1).await, [lease(1)]);
        assert_eq!(desk.kept(), [lease(2).task, lease(3).task]);
        let start = Instant::now();
        assert_eq!(desk.errand().await, Errand::Release(vec![lease(2), lease(3)]));
        assert_eq!(start.elapsed(), KEEP);
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_that_waits_is_an_errand_until_it_is_dropped() {
        let desk = Desk::default();
        {
            let mut claim = Box::pin(desk.claim(7));
            tokio::select! {
                biased;
                _ = &mut claim => unreachable!("nothing has arrived"),
                errand = desk.errand() => assert_eq!(errand, Errand::Claim(7)),
            }
        }
        let moment = Duration::from_millis(1);
        assert!(tokio::time::timeout(moment, desk.errand()).await.is_err());
        desk.keep(vec![lease(1)]);
        assert_eq!(desk.claim(5).await, [lease(1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_is_drained_asks_for_nothing() {
        let desk = Desk::default();
        assert!(desk.drain(true));
        let _asking = Asking::new(&desk, 1);
        let moment = Duration::from_millis(1);
        assert!(tokio::time::timeout(moment, desk.errand()).await.is_err());
        assert!(desk.drain(false));
        assert_eq!(desk.errand().await, Errand::Claim(1));
    }
}
