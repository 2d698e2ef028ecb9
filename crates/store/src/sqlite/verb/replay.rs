//! Replay: open the next run of tasks that have ended.

use duly_core::ports::store::{Controlled, Replay, ReplayTasks};
use duly_core::state::{Event, transition};
use rusqlite::params;

use super::control::{Found, each};
use super::{Scope, Verb};
use crate::audited::{Audited, Subject};
use crate::sqlite::error::Result;
use crate::sqlite::row;
use crate::sqlite::task_state::replayed::replayed;

impl Verb for ReplayTasks {
    type Answer = Vec<Controlled>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let payload = self.payload.as_deref();
        let mut orders = self.tasks.iter();
        let ids: Vec<_> = self.tasks.iter().map(|replay| replay.task).collect();
        each(scope, &self.tenant, &ids, |scope, found| {
            let order = orders.by_ref().find(|order| order.task == found.task);
            one(scope, found, order.expect("answers come in order"), payload)
        })
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

fn one(
    scope: &mut Scope<'_>,
    found: &Found,
    order: &Replay,
    payload: Option<&str>,
) -> Result<Controlled> {
    if found.run > order.run {
        return Ok(Controlled::Done);
    }
    if transition(found.status, Event::Replay).is_err() {
        return Ok(Controlled::Conflict { status: found.status });
    }
    let run_at = order.run_at.map_or(scope.now, |at| at.max(scope.now)).millis();
    replayed(scope, found, run_at)?;
    if let Some(payload) = payload {
        change_payload(scope, found, payload)?;
    }
    Ok(Controlled::Done)
}

pub(super) fn change_payload(scope: &Scope<'_>, found: &Found, payload: &str) -> Result<()> {
    let inline = payload.len() <= row::INLINE_PAYLOAD_BYTES;
    let id = found.task.as_bytes();
    scope.connection.execute(
        "/* replay.payload */ UPDATE task SET payload = ? WHERE id = ?",
        params![inline.then_some(payload), id],
    )?;
    scope.connection.execute("/* replay.payload */ DELETE FROM payload WHERE task = ?", [id])?;
    if !inline {
        scope.connection.execute(
            "/* replay.payload */ INSERT INTO payload (task, body) VALUES (?, ?)",
            params![id, payload],
        )?;
    }
    Ok(())
}
