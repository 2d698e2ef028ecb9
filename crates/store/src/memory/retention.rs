//! How the reference model forgets ended tasks.

use async_trait::async_trait;
use duly_core::limits::{SCAN_ROWS, STORE_BATCH};
use duly_core::ports::store::{Expiry, Result, Sweep, Swept};
use duly_core::time::Timestamp;

use super::MemoryStore;
use super::model::Model;

#[async_trait]
impl Expiry for MemoryStore {
    async fn sweep(&self, sweep: Sweep) -> Result<Swept> {
        Ok(self.model.lock().sweep(&sweep, self.clock.now()))
    }

    async fn forget_sessions(&self, before: Timestamp) -> Result<u32> {
        Ok(self.model.lock().forget_sessions(before))
    }
}

impl Model {
    fn sweep(&mut self, sweep: &Sweep, now: Timestamp) -> Swept {
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
            let cutoff = sweep.cutoffs_of(&task.lane.tenant).before(task.status);
            if let (Some(cutoff), Some(ended)) = (cutoff, task.finished_at)
                && ended < cutoff
                && !self.has_open_children(*id)
            {
                expired.push(*id);
            }
        }
        for id in &expired {
            self.deleted(*id, now);
        }
        Swept { deleted: u32::try_from(expired.len()).expect("bounded"), next }
    }

    fn forget_sessions(&mut self, before: Timestamp) -> u32 {
        let mut old: Vec<_> =
            self.ended.iter().filter(|(_, ended)| **ended < before).map(|(id, _)| *id).collect();
        old.sort_unstable();
        old.truncate(STORE_BATCH);
        for id in &old {
            self.ended.remove(id);
            self.forget_name(*id);
        }
        u32::try_from(old.len()).expect("bounded")
    }
}
