//! Purge: delete failed tasks with everything about them.

use duly_core::ports::store::{Controlled, PurgeTasks};
use duly_core::state::Status;

use super::control::{Found, each};
use super::dead::unbury;
use super::{Scope, Verb};
use crate::sqlite::error::Result;

impl Verb for PurgeTasks {
    type Answer = Vec<Controlled>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let answers = each(scope, &self.tenant, &self.tasks, |scope, found| match found.status {
            Status::Failed => one(scope, found),
            status => Ok(Controlled::Conflict { status }),
        })?;
        let gone = |answer| if answer == Controlled::Unknown { Controlled::Done } else { answer };
        Ok(answers.into_iter().map(gone).collect())
    }
}

fn one(scope: &Scope<'_>, found: &Found) -> Result<Controlled> {
    unbury(scope, found.task)?;
    for statement in [
        "/* purge */ DELETE FROM attempt WHERE task = ?",
        "/* purge */ DELETE FROM payload WHERE task = ?",
        "/* purge */ DELETE FROM task WHERE id = ? AND status = 4",
    ] {
        scope.connection.prepare_cached(statement)?.execute([found.task.as_bytes()])?;
    }
    Ok(Controlled::Done)
}
