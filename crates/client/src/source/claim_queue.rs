//! Claims that wait for leases, and leases that no claim has taken. When a claim is dropped, its
//! request to the server goes on; the leases it brings are kept for the next claim, or released if
//! there is none.

use std::collections::VecDeque;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::lease::Lease;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long leases are kept without a claim.
const KEEP: Duration = Duration::from_secs(1);

/// What the claim loop does next.
#[derive(Debug, PartialEq)]
pub(super) enum ClaimAction {
    /// Claim this many leases from the server.
    Claim(usize),
    /// Release these leases.
    Release(Vec<Lease>),
}

#[derive(Default)]
pub(super) struct ClaimQueue {
    state: Mutex<State>,
    /// Wakes the claim loop.
    changed: Notify,
    /// Wakes the claims.
    arrived: Notify,
}

#[derive(Default)]
struct State {
    /// How many leases the waiting claims want.
    wanted: usize,
    kept: VecDeque<Kept>,
    draining: bool,
}

struct Kept {
    lease: Lease,
    since: Instant,
}

impl ClaimQueue {
    /// Waits for leases and takes at most this many.
    pub(super) async fn claim(&self, max: usize) -> Vec<Lease> {
        let _waiting = WaitingClaim::new(self, max);
        loop {
            // Created before the check, so that leases that arrive in between are not missed.
            let arrived = self.arrived.notified();
            let leases = self.take(max);
            if !leases.is_empty() {
                return leases;
            }
            arrived.await;
        }
    }

    /// Adds leases from the server.
    pub(super) fn add(&self, leases: Vec<Lease>) {
        let since = Instant::now();
        self.state.lock().kept.extend(leases.into_iter().map(|lease| Kept { lease, since }));
        self.arrived.notify_waiters();
        self.changed.notify_one();
    }

    /// Removes all leases.
    pub(super) fn clear(&self) -> Vec<Lease> {
        let kept = std::mem::take(&mut self.state.lock().kept);
        self.changed.notify_one();
        kept.into_iter().map(|kept| kept.lease).collect()
    }

    /// The tasks of leases that no claim has taken.
    pub(super) fn kept_tasks(&self) -> Vec<TaskId> {
        self.state.lock().kept.iter().map(|kept| kept.lease.task).collect()
    }

    /// Starts or ends a drain, in which the worker claims nothing. Returns whether that changed.
    pub(super) fn set_draining(&self, draining: bool) -> bool {
        let changed = std::mem::replace(&mut self.state.lock().draining, draining) != draining;
        self.changed.notify_one();
        changed
    }

    /// Waits for the next action. For one caller at a time.
    pub(super) async fn next_action(&self) -> ClaimAction {
        loop {
            let overdue = match self.state.lock().next_action() {
                Ok(action) => return action,
                Err(overdue) => overdue,
            };
            match overdue {
                None => self.changed.notified().await,
                Some(at) => {
                    let _ = tokio::time::timeout_at(at, self.changed.notified()).await;
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
    /// The action to take now, or when to check again.
    fn next_action(&mut self) -> Result<ClaimAction, Option<Instant>> {
        match self.kept.front() {
            None if self.wanted > 0 && !self.draining => Ok(ClaimAction::Claim(self.wanted)),
            Some(oldest) if self.wanted == 0 => {
                let until = oldest.since + KEEP;
                if Instant::now() < until {
                    return Err(Some(until));
                }
                Ok(ClaimAction::Release(self.kept.drain(..).map(|kept| kept.lease).collect()))
            }
            _ => Err(None),
        }
    }
}

/// A claim that waits.
struct WaitingClaim<'a> {
    queue: &'a ClaimQueue,
    max: usize,
}

impl<'a> WaitingClaim<'a> {
    fn new(queue: &'a ClaimQueue, max: usize) -> Self {
        queue.state.lock().wanted += max;
        queue.changed.notify_one();
        Self { queue, max }
    }
}

impl Drop for WaitingClaim<'_> {
    fn drop(&mut self) {
        self.queue.state.lock().wanted -= self.max;
        self.queue.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::lease;

    #[tokio::test(start_paused = true)]
    async fn leases_wait_a_second_for_the_next_claim() {
        let queue = ClaimQueue::default();
        queue.add(vec![lease(1), lease(2), lease(3)]);
        assert_eq!(queue.claim(1).await, [lease(1)]);
        assert_eq!(queue.kept_tasks(), [lease(2).task, lease(3).task]);
        let start = Instant::now();
        assert_eq!(queue.next_action().await, ClaimAction::Release(vec![lease(2), lease(3)]));
        assert_eq!(start.elapsed(), KEEP);
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_claim_makes_a_request_until_it_is_dropped() {
        let queue = ClaimQueue::default();
        {
            let mut claim = Box::pin(queue.claim(7));
            tokio::select! {
                biased;
                _ = &mut claim => unreachable!("nothing has arrived"),
                action = queue.next_action() => assert_eq!(action, ClaimAction::Claim(7)),
            }
        }
        let moment = Duration::from_millis(1);
        assert!(tokio::time::timeout(moment, queue.next_action()).await.is_err());
        queue.add(vec![lease(1)]);
        assert_eq!(queue.claim(5).await, [lease(1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_draining_worker_claims_nothing() {
        let queue = ClaimQueue::default();
        assert!(queue.set_draining(true));
        let _waiting = WaitingClaim::new(&queue, 1);
        let moment = Duration::from_millis(1);
        assert!(tokio::time::timeout(moment, queue.next_action()).await.is_err());
        assert!(queue.set_draining(false));
        assert_eq!(queue.next_action().await, ClaimAction::Claim(1));
    }
}
