//! Which leases a worker holds: under which session, and from which claim.

use std::collections::HashMap;

use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Lease};
use duly_core::limits::CONCURRENCY;
use duly_core::ports::work_source::{TakenBack, Why};

/// The leases that were received and whose end was not answered yet.
#[derive(Default)]
pub(super) struct Held {
    leases: HashMap<(TaskId, u32), Batch>,
    /// How many leases of each batch are left.
    left: HashMap<Batch, usize>,
}

/// The answer to one claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Batch {
    pub(super) session: SessionId,
    pub(super) seq: u64,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    pub(super) fn add(&mut self, batch: Batch, leases: &[Lease]) {
        let new = |lease: &&Lease| self.leases.insert((lease.task, lease.epoch), batch).is_none();
        let added = leases.iter().filter(new).count();
        *self.left.entry(batch).or_default() += added;
    }

    /// Their ends are known.
    pub(super) fn remove(&mut self, finishes: &[Finish]) {
        for finish in finishes {
            let Some(batch) = self.leases.remove(&(finish.task, finish.epoch)) else { continue };
            if let Some(left) = self.left.get_mut(&batch) {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    self.left.remove(&batch);
                }
            }
        }
    }

    /// The session under which a lease was received.
    pub(super) fn session_of(&self, lease: (TaskId, u32)) -> Option<SessionId> {
        self.leases.get(&lease).map(|batch| batch.session)
    }

    /// The batches of a session of which something is left, in order: the last ones, if there
    /// are more than a beat may name, since the others were named before.
    pub(super) fn received(&self, session: SessionId) -> Vec<u64> {
        let own = self.left.keys().filter(|batch| batch.session == session);
        let mut numbers: Vec<_> = own.map(|batch| batch.seq).collect();
        numbers.sort_unstable();
        numbers.split_off(numbers.len().saturating_sub(CONCURRENCY))
    }

    /// Everything that goes with a session.
    pub(super) fn lost_with(&self, session: SessionId) -> Vec<TakenBack> {
        let own = self.leases.iter().filter(|(_, batch)| batch.session == session);
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
    fn a_batch_is_received_until_its_last_lease_has_ended() {
        let mut held = Held::default();
        let (one, two) = ([lease(1), lease(2)], [lease(3)]);
        held.add(Batch { session: session(1), seq: 1 }, &one);
        held.add(Batch { session: session(1), seq: 2 }, &two);
        held.add(Batch { session: session(2), seq: 1 }, &[lease(4)]);
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
    fn a_batch_that_arrives_twice_counts_once() {
        let mut held = Held::default();
        let batch = Batch { session: session(1), seq: 1 };
        held.add(batch, &[lease(1)]);
        held.add(batch, &[lease(1)]);
        held.remove(&[lease(1).release()]);
        assert!(held.received(session(1)).is_empty());
    }
}
