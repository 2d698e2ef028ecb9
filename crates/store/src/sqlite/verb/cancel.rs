//! Cancel: end tasks that wait or run.

use duly_core::ports::store::{CancelTasks, Controlled};
use duly_core::state::{Event, Status, transition};
use duly_core::task::Failure;

use super::control::{Found, each};
use super::{Scope, Verb};
use crate::audited::{Audited, Subject};
use crate::sqlite::error::Result;
use crate::sqlite::row;
use crate::sqlite::task_state::ended::cancelled;

impl Verb for CancelTasks {
    type Answer = Vec<Controlled>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let error = row::encode_failure(&Failure::new("CANCELLED", self.reason.clone()));
        each(scope, &self.tenant, &self.tasks, |scope, found| match found.status {
            Status::Cancelled => Ok(Controlled::Done),
            _ => one(scope, found, &error),
        })
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

fn one(scope: &mut Scope<'_>, found: &Found, error: &str) -> Result<Controlled> {
    let Ok(status) = transition(found.status, Event::Cancel) else {
        return Ok(Controlled::Conflict { status: found.status });
    };
    cancelled(scope, found, status, error)?;
    Ok(Controlled::Done)
}
