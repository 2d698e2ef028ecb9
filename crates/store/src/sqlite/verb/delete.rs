//! Delete: tasks of a tenant that have ended, with everything about them.

use duly_core::id::TaskId;
use duly_core::name::TenantName;
use duly_core::ports::store::{Controlled, DeleteTasks, PurgeTasks};
use duly_core::state::Status;
use duly_core::time::Timestamp;

use super::control::each;
use super::{Scope, Verb};
use crate::sqlite::error::Result;
use crate::sqlite::task_state::deleted::{deleted, has_open_children};

impl Verb for DeleteTasks {
    type Answer = Vec<Controlled>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        delete(scope, &self.tenant, &self.tasks, Status::is_terminal, self.before)
    }
}

impl Verb for PurgeTasks {
    type Answer = Vec<Controlled>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let failed = |status| status == Status::Failed;
        delete(scope, &self.tenant, &self.tasks, failed, None)
    }
}

/// Deletes the tasks that are in one of these states, and ended before this time if one is given. A
/// task that is gone was deleted before.
fn delete(
    scope: &mut Scope<'_>,
    tenant: &TenantName,
    tasks: &[TaskId],
    accepts: impl Fn(Status) -> bool,
    before: Option<Timestamp>,
) -> Result<Vec<Controlled>> {
    let answers = each(scope, tenant, tasks, |scope, found| {
        if accepts(found.status) && deleted(scope, found.task, found.status, before)? {
            return Ok(Controlled::Done);
        }
        if accepts(found.status) && has_open_children(scope, found.task)? {
            return Ok(Controlled::OpenChildren);
        }
        Ok(Controlled::Conflict { status: found.status })
    })?;
    let gone = |answer| if answer == Controlled::Unknown { Controlled::Done } else { answer };
    Ok(answers.into_iter().map(gone).collect())
}
