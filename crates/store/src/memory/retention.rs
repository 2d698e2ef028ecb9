//! How the reference model forgets ended tasks.

use async_trait::async_trait;
use duly_core::id::TaskId;
use duly_core::limits::{SCAN_ROWS, STORE_BATCH};
use duly_core::ports::store::{Expiry, Result, Sweep, Swept};

use super::MemoryStore;
use super::model::Model;

#[async_trait]
impl Expiry for MemoryStore {
    async fn sweep(&self, sweep: Sweep) -> Result<Swept> {
        Ok(self.model.lock().sweep(&sweep))
    }
}

impl Model {
    fn sweep(&mut self, sweep: &Sweep) -> Swept {
        let Some(latest) = sweep.latest() else { return Swept { deleted: 0, next: None } };
        let (mut looked, mut next, mut expired) = (0, None, Vec::new());
        for (id, task) in &self.tasks {
            if sweep.after.is_some_and(|after| *id <= after) {
                continue;
            }
            if id.first_due() >= latest {
                break;
            }
            if looked == SCAN_ROWS || expired.len() == STORE_BATCH {
                next = self.tasks.range(..*id).next_back().map(|(id, _)| *id);
                break;
            }
            looked += 1;
            let cutoff = sweep.before(task.status);
            if let (Some(cutoff), Some(ended)) = (cutoff, task.finished_at)
                && ended < cutoff
            {
                expired.push(*id);
            }
        }
        for id in &expired {
            self.forget(*id);
        }
        Swept { deleted: u32::try_from(expired.len()).expect("bounded"), next }
    }

    /// Deletes a task with everything about it.
    pub(super) fn forget(&mut self, id: TaskId) {
        self.tasks.remove(&id);
        self.attempts.remove(&id);
        self.forget_logs(id, u32::MAX);
        self.deadlines.remove(&id);
        self.extended.retain(|(task, _)| *task != id);
        for grant in self.grants.values_mut() {
            grant.leases.retain(|(task, _)| *task != id);
        }
    }
}
