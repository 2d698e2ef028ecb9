//! Expire: delete tasks that a reader found to have ended long ago, if it is still so.

use duly_core::id::TaskId;
use duly_core::ports::store::Sweep;
use duly_core::state::Status;

use super::delete::delete;
use super::{Scope, Verb};
use crate::sqlite::error::Result;

/// What a reader found. Answers how many are gone.
pub(in crate::sqlite) struct Expire {
    pub(in crate::sqlite) sweep: Sweep,
    pub(in crate::sqlite) tasks: Vec<(TaskId, Status)>,
}

impl Verb for Expire {
    type Answer = u32;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<u32> {
        let mut deleted = 0;
        for (task, status) in &self.tasks {
            let Some(before) = self.sweep.before(*status) else { continue };
            deleted += u32::from(delete(scope, *task, *status, Some(before))?);
        }
        Ok(deleted)
    }
}
