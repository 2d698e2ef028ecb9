//! Cancel: end tasks that wait or run.

use duly_core::ports::store::{CancelTasks, Controlled};
use duly_core::state::{Event, Status, transition};
use duly_core::task::Failure;
use rusqlite::params;

use super::control::{Found, each, stop_waiting};
use super::{Scope, Verb};
use crate::sqlite::error::Result;
use crate::sqlite::row;

impl Verb for CancelTasks {
    type Answer = Vec<Controlled>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let error = row::encode_failure(&Failure::new("CANCELLED", self.reason.clone()));
        each(scope, &self.tenant, &self.tasks, |scope, found| match found.status {
            Status::Cancelled => Ok(Controlled::Done),
            _ => one(scope, found, &error),
        })
    }
}

fn one(scope: &mut Scope<'_>, found: &Found, error: &str) -> Result<Controlled> {
    let Ok(status) = transition(found.status, Event::Cancel) else {
        return Ok(Controlled::Conflict { status: found.status });
    };
    // A raised epoch refuses whatever the holder says from now on.
    let raise = u32::from(found.status == Status::Running);
    scope
        .connection
        .prepare_cached(
            "/* cancel */ UPDATE task SET status = ?4, epoch = epoch + ?5, finished_at = ?6, error = ?7
             WHERE id = ?1 AND epoch = ?2 AND status = ?3",
        )?
        .execute(params![
            found.task.as_bytes(),
            found.epoch,
            row::encode_status(found.status),
            row::encode_status(status),
            raise,
            scope.now.millis(),
            error,
        ])?;
    if found.status == Status::Running {
        scope.index.grants.end(scope.connection, found.task)?;
    } else {
        stop_waiting(scope, found)?;
    }
    Ok(Controlled::Done)
}
