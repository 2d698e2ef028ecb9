//! Delete: tasks of a tenant that have ended, with everything about them.

use duly_core::ports::store::{Controlled, DeleteTasks};

use super::control::each;
use super::{Scope, Verb};
use crate::audited::{Audited, Subject};
use crate::sqlite::error::Result;
use crate::sqlite::task_state::deleted::{deleted, has_open_children};

impl Verb for DeleteTasks {
    type Answer = Vec<Controlled>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let answers = each(scope, &self.tenant, &self.tasks, |scope, found| {
            let ended = found.status.is_terminal();
            if ended && deleted(scope, found.task, found.status, self.before)? {
                return Ok(Controlled::Done);
            }
            if ended && has_open_children(scope, found.task)? {
                return Ok(Controlled::OpenChildren);
            }
            Ok(Controlled::Conflict { status: found.status })
        })?;
        // A task that is gone was deleted before.
        let gone = |answer| if answer == Controlled::Unknown { Controlled::Done } else { answer };
        Ok(answers.into_iter().map(gone).collect())
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}
