//! Purge: delete failed tasks with everything about them.

use duly_core::ports::store::{Controlled, PurgeTasks};
use duly_core::state::Status;

use super::control::each;
use super::delete::delete;
use super::{Scope, Verb};
use crate::sqlite::error::Result;

impl Verb for PurgeTasks {
    type Answer = Vec<Controlled>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let answers = each(scope, &self.tenant, &self.tasks, |scope, found| match found.status {
            Status::Failed => {
                delete(scope, found.task, Status::Failed, None)?;
                Ok(Controlled::Done)
            }
            status => Ok(Controlled::Conflict { status }),
        })?;
        let gone = |answer| if answer == Controlled::Unknown { Controlled::Done } else { answer };
        Ok(answers.into_iter().map(gone).collect())
    }
}
