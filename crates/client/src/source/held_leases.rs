//! The leases that a worker holds: under which session, and from which claim.

use std::collections::HashMap;

use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Lease};
use duly_core::limits::CONCURRENCY;
use duly_core::ports::work_source::{TakenBack, Why};

/// Leases that were received and whose outcome is not answered.
#[derive(Default)]
pub(super) struct HeldLeases {
    leases: HashMap<(TaskId, u32), ClaimId>,
    /// How many leases of each claim are left.
    left: HashMap<ClaimId, usize>,
}

/// One claim of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClaimId {
    pub(super) session: SessionId,
    pub(super) seq: u64,
}

impl HeldLeases {
    pub(super) fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    pub(super) fn add(&mut self, claim: ClaimId, leases: &[Lease]) {
        let new = |lease: &&Lease| self.leases.insert((lease.task, lease.epoch), claim).is_none();
        let added = leases.iter().filter(new).count();
        *self.left.entry(claim).or_default() += added;
    }

    /// Removes leases whose outcomes are answered.
    pub(super) fn remove(&mut self, finishes: &[Finish]) {
        for finish in finishes {
            let Some(claim) = self.leases.remove(&(finish.task, finish.epoch)) else { continue };
            if let Some(left) = self.left.get_mut(&claim) {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    self.left.remove(&claim);
                }
            }
        }
    }

    /// The session under which a lease was received.
    pub(super) fn session_of(&self, lease: (TaskId, u32)) -> Option<SessionId> {
        self.leases.get(&lease).map(|claim| claim.session)
    }

    /// The numbers of a session's claims with leases left, in order. If there are more than a
    /// heartbeat may name, the last ones: earlier heartbeats named the rest.
    pub(super) fn received(&self, session: SessionId) -> Vec<u64> {
        let own = self.left.keys().filter(|claim| claim.session == session);
        let mut numbers: Vec<_> = own.map(|claim| claim.seq).collect();
        numbers.sort_unstable();
        numbers.split_off(numbers.len().saturating_sub(CONCURRENCY))
    }

    /// The leases that are lost with a session.
    pub(super) fn lost_with(&self, session: SessionId) -> Vec<TakenBack> {
        let own = self.leases.iter().filter(|(_, claim)| claim.session == session);
        own.map(|(&(task, epoch), _)| TakenBack { task, epoch, why: Why::Lost }).collect()
    }
}

#[cfg(test)]
mod tests {
    use duly_core::time::Timestamp;

    use super::*;
    use crate::source::tests::lease;

    fn session(number: u64) -> SessionId {
        SessionId::mint(Timestamp::EPOCH, number)
    }

    #[test]
    fn a_claim_is_received_until_its_last_lease_has_ended() {
        let mut held = HeldLeases::default();
        let (one, two) = ([lease(1), lease(2)], [lease(3)]);
        held.add(ClaimId { session: session(1), seq: 1 }, &one);
        held.add(ClaimId { session: session(1), seq: 2 }, &two);
        held.add(ClaimId { session: session(2), seq: 1 }, &[lease(4)]);
        assert_eq!(held.received(session(1)), [1, 2]);
        held.remove(&[one[0].release(), two[0].release()]);
        assert_eq!(held.received(session(1)), [1]);
        assert_eq!(held.session_of((one[1].task, one[1].epoch)), Some(session(1)));
        held.remove(&[one[1].release(), one[1].release()]);
        assert!(held.received(session(1)).is_empty());
        assert_eq!(held.lost_with(session(2)).len(), 1);
        assert!(!held.is_empty());
    }

    #[test]
    fn a_claim_that_arrives_twice_counts_once() {
        let mut held = HeldLeases::default();
        let claim = ClaimId { session: session(1), seq: 1 };
        held.add(claim, &[lease(1)]);
        held.add(claim, &[lease(1)]);
        held.remove(&[lease(1).release()]);
        assert!(held.received(session(1)).is_empty());
    }
}
