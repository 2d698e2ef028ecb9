//! Retry: make tasks that wait for their next attempt due now.

use duly_core::event::EventKind;
use duly_core::ports::store::{Controlled, RetryTasks};
use duly_core::state::Status;
use rusqlite::params;

use super::control::{Found, each, stop_waiting};
use super::{Scope, Verb};
use crate::audited::{Audited, Subject};
use crate::sqlite::error::Result;

impl Verb for RetryTasks {
    type Answer = Vec<Controlled>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        each(scope, &self.tenant, &self.tasks, |scope, found| {
            if found.status == Status::Pending && found.charged > 0 {
                one(scope, found)
            } else {
                Ok(Controlled::Conflict { status: found.status })
            }
        })
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

fn one(scope: &mut Scope<'_>, found: &Found) -> Result<Controlled> {
    let run_at = scope.now.millis().min(found.run_at);
    if run_at < found.run_at {
        stop_waiting(scope, found)?;
        scope
            .connection
            .prepare_cached(
                "/* retry */ UPDATE task SET run_at = ? WHERE id = ? AND epoch = ? AND status = 1",
            )?
            .execute(params![run_at, found.task.as_bytes(), found.epoch])?;
        scope.wait(found.range, run_at, found.task.as_bytes())?;
        scope.tell(EventKind::TaskEdited, found.task)?;
    }
    Ok(Controlled::Done)
}
