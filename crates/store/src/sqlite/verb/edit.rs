//! Edit: change a task that waits or is blocked.

use duly_core::event::EventKind;
use duly_core::ports::store::{Controlled, EditTask, TaskChange};
use duly_core::state::Status;
use duly_core::submit::Start;
use rusqlite::params;

use super::control::{Found, each, stop_waiting};
use super::replay::change_payload;
use super::{Scope, Verb};
use crate::audited::{Audited, Subject};
use crate::sqlite::error::Result;
use crate::sqlite::index::heads::Range;
use crate::sqlite::row;

impl Verb for EditTask {
    type Answer = Controlled;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Controlled> {
        let answers = each(scope, &self.tenant, &[self.task], |scope, found| match found.status {
            Status::Pending | Status::Blocked => one(scope, found, &self.change),
            status => Ok(Controlled::Conflict { status }),
        })?;
        Ok(answers[0])
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

fn one(scope: &mut Scope<'_>, found: &Found, change: &TaskChange) -> Result<Controlled> {
    let rank = change.priority.map_or(found.range.rank, |priority| {
        // A quarantined task stays so.
        let range = Range { rank: priority.rank(), ..found.range };
        range.quarantined(found.range.is_quarantined()).rank
    });
    let run_at = change.start.map_or(found.run_at, |start| start.resolve(scope.now).millis());
    scope
        .connection
        .prepare_cached(
            "/* edit */ UPDATE task SET rank = ?3, run_at = ?4, retries = coalesce(?5, retries),
                    timeout_ms = coalesce(?6, timeout_ms), labels = iif(?7, ?8, labels)
             WHERE id = ?1 AND epoch = ?2 AND status IN (0, 1)",
        )?
        .execute(params![
            found.task.as_bytes(),
            found.epoch,
            rank,
            run_at,
            change.retries,
            row::encode_duration(change.timeout),
            change.labels.is_some(),
            change.labels.as_ref().and_then(row::encode_labels),
        ])?;
    scope.tell(EventKind::TaskEdited, found.task)?;
    if let Some(payload) = &change.payload {
        change_payload(scope, found, payload)?;
    }
    if found.status == Status::Blocked {
        return delay(scope, found, change).map(|()| Controlled::Done);
    }
    if (rank, run_at) != (found.range.rank, found.run_at) {
        stop_waiting(scope, found)?;
        scope.wait(Range { rank, ..found.range }, run_at, found.task.as_bytes())?;
    }
    Ok(Controlled::Done)
}

/// The delay of a blocked task counts from its release.
fn delay(scope: &Scope<'_>, found: &Found, change: &TaskChange) -> Result<()> {
    let Some(start) = change.start else { return Ok(()) };
    let delay = if let Start::After(delay) = start { Some(delay) } else { None };
    scope
        .connection
        .prepare_cached(
            "/* edit.delay */ UPDATE blocked SET delay_ms = ? WHERE lane = ? AND task = ?",
        )?
        .execute(params![row::encode_duration(delay), found.range.lane, found.task.as_bytes()])?;
    Ok(())
}
