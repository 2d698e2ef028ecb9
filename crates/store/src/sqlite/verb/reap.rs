//! Reap: take back leases that are overdue or unacknowledged.

use duly_core::id::SessionId;
use duly_core::ports::store::{Reap, Reaped};
use duly_core::ports::work_source::{self, Why};
use duly_core::task::Failure;
use duly_core::time::Timestamp;
use rusqlite::{OptionalExtension as _, params};

use super::reclaim::{Reason, take_back};
use super::{Scope, Verb};
use crate::sqlite::error::Result;
use crate::sqlite::index::grants::{Batch, Granted, held};
use crate::sqlite::row;
use crate::sqlite::task_state::ended::{TakenBack, taken_back};
use crate::sqlite::task_state::waiting::{Wait, waiting};
use crate::sqlite::task_state::{EndedBy, Held};

impl Verb for Reap {
    type Answer = Reaped;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Reaped> {
        let mut reaped = Reaped::default();
        for batch in scope.index.grants.overdue(scope.now.millis()) {
            time_out_batch(scope, self, batch, &mut reaped)?;
        }
        for batch in unacknowledged(scope, self.unacknowledged_before) {
            for lease in scope.index.grants.live(batch) {
                reaped.taken_back.push(lost(batch, lease));
                take_back(scope, batch.session, lease, Reason::Release)?;
            }
        }
        let next = scope.index.grants.next_deadline();
        reaped.next_deadline = next.map(Timestamp::clamped);
        Ok(reaped)
    }
}

fn lost(batch: Batch, lease: Granted) -> (SessionId, work_source::TakenBack) {
    (batch.session, work_source::TakenBack { task: lease.task, epoch: lease.epoch, why: Why::Lost })
}

/// Only the newest claim of a remote session can be unacknowledged: a claim acknowledges the one
/// before.
fn unacknowledged(scope: &Scope<'_>, before: Timestamp) -> Vec<Batch> {
    let sessions = scope.index.sessions.remote();
    let newest = sessions.map(|(session, it)| Batch { session, sequence: it.newest() });
    newest.filter(|it| scope.index.grants.is_unacknowledged(*it, before.millis())).collect()
}

/// A batch holds leases of different deadlines: those that are late end, and the batch is looked
/// at again when the next one is.
fn time_out_batch(
    scope: &mut Scope<'_>,
    reap: &Reap,
    batch: Batch,
    reaped: &mut Reaped,
) -> Result<()> {
    let mut next = i64::MAX;
    for lease in scope.index.grants.live(batch) {
        let Some(held) = held(scope.connection, batch, lease)? else { continue };
        let deadline = scope.index.grants.deadline(&held);
        if deadline > scope.now.millis() {
            next = next.min(deadline);
            continue;
        }
        reaped.taken_back.push(lost(batch, lease));
        time_out(scope, reap, batch, lease)?;
    }
    scope.index.grants.look_at(batch, next);
    Ok(())
}

/// A failed attempt: the task waits for its next one, or there is none.
fn time_out(scope: &mut Scope<'_>, reap: &Reap, batch: Batch, lease: Granted) -> Result<()> {
    scope.index.grants.end(scope.connection, lease.task)?;
    let key = params![lease.task.as_bytes(), lease.epoch, batch.session.as_bytes()];
    let held = scope
        .connection
        .prepare_cached(
            "/* reap.read */ SELECT charged, retries, back_off FROM task
             WHERE id = ? AND epoch = ? AND session = ? AND status = 2",
        )?
        .query_row(key, |row| {
            let policy = row::decode_back_off(row.get_ref(2)?, lease.task.as_bytes());
            Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?, policy))
        })
        .optional()?;
    let Some((charged, retries, policy)) = held else { return Ok(()) };
    let held = Held { session: batch.session, lease };
    let (attempt, error) = (charged + 1, &Failure::overdue());
    if attempt > retries {
        return taken_back(scope, held, TakenBack::Overdue, error);
    }
    let wait = policy.unwrap_or_default().wait_for(lease.task, attempt, reap.entropy);
    let run_at = scope.now.plus(wait).millis();
    waiting(scope, held, EndedBy::Store, Wait::Retry { error, ran: None, run_at }).map(drop)
}
