//! Tells the coordinator of this node which schedules its use cases have changed.

use std::collections::BTreeSet;

use duly_core::id::ScheduleId;
use duly_core::limits::STORE_BATCH;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Rings when schedules were changed.
#[derive(Debug, Default)]
pub(crate) struct ScheduleBell {
    changed: Mutex<Changed>,
    rung: Notify,
}

/// Schedules that were changed since the last look.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) ids: BTreeSet<ScheduleId>,
    /// Whether they are too many to be named: a node that does not lead hears of all and looks at none.
    pub(crate) many: bool,
}

impl ScheduleBell {
    /// A schedule was created, changed or deleted.
    pub(crate) fn ring(&self, id: ScheduleId) {
        let mut changed = self.changed.lock();
        if changed.ids.len() < STORE_BATCH {
            changed.ids.insert(id);
        } else {
            changed.many = true;
        }
        drop(changed);
        self.rung.notify_one();
    }

    /// Waits until it rings.
    pub(crate) async fn rung(&self) {
        self.rung.notified().await;
    }

    /// What was changed since the last call.
    pub(crate) fn take(&self) -> Changed {
        std::mem::take(&mut *self.changed.lock())
    }
}

#[cfg(test)]
mod tests {
    use duly_core::time::Timestamp;

    use super::*;

    #[test]
    fn changes_without_a_listener_are_bounded() {
        let bell = ScheduleBell::default();
        let id = |n: u64| ScheduleId::mint(Timestamp::EPOCH, n);
        bell.ring(id(1));
        bell.ring(id(1));
        assert_eq!(bell.take(), Changed { ids: BTreeSet::from([id(1)]), many: false });
        for n in 0..=STORE_BATCH as u64 {
            bell.ring(id(n));
        }
        let changed = bell.take();
        assert_eq!((changed.ids.len(), changed.many), (STORE_BATCH, true));
        assert_eq!(bell.take(), Changed::default());
    }
}
