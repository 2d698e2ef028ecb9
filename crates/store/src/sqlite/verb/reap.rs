//! Reap: take back leases that are overdue or that nobody acknowledged.

use duly_core::ports::store::{Reap, Reaped};
use duly_core::ports::work_source::{TakenBack, Why};
use duly_core::state::{Event, Status, transition};
use duly_core::task::Failure;
use duly_core::time::Timestamp;
use rusqlite::{OptionalExtension as _, params};

use super::dead::{bury, record};
use super::reclaim::{Reason, take_back};
use super::{Scope, Verb};
use crate::sqlite::error::Result;
use crate::sqlite::index::grants::{Batch, Granted, held};
use crate::sqlite::index::heads::Range;
use crate::sqlite::row;

impl Verb for Reap {
    type Answer = Reaped;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Reaped> {
        let mut reaped = Reaped::default();
        for batch in scope.index.grants.overdue(scope.now.millis()) {
            time_out_batch(scope, self, batch, &mut reaped)?;
        }
        for batch in unacknowledged(scope, self.unacknowledged_before) {
            for lease in scope.index.grants.live(batch) {
                reaped.taken_back.push(taken_back(batch, lease));
                take_back(scope, batch.session, lease, Reason::Release)?;
            }
        }
        let next = scope.index.grants.next_deadline();
        reaped.next_deadline = next.map(Timestamp::clamped);
        Ok(reaped)
    }
}

fn taken_back(batch: Batch, lease: Granted) -> (duly_core::id::SessionId, TakenBack) {
    (batch.session, TakenBack { task: lease.task, epoch: lease.epoch, why: Why::Lost })
}

/// Only the newest claim of a session elsewhere can be unheard of: asking for the next one says
/// that the one before has arrived.
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
        reaped.taken_back.push(taken_back(batch, lease));
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
            "/* reap.read */ SELECT lane, rank, charged, retries, back_off FROM task
             WHERE id = ? AND epoch = ? AND session = ? AND status = 2",
        )?
        .query_row(key, |row| {
            let policy = row::decode_back_off(row.get_ref(4)?, lease.task.as_bytes());
            let range = Range { lane: row.get(0)?, rank: row.get(1)? };
            Ok((range, row.get::<_, u32>(2)?, row.get::<_, u32>(3)?, policy))
        })
        .optional()?;
    let Some((range, charged, retries, policy)) = held else { return Ok(()) };
    let error = Failure::overdue();
    record(scope, batch.session, lease, &error, None)?;
    let attempt = charged + 1;
    let event = if attempt > retries { Event::Fail } else { Event::Retry };
    let status = transition(Status::Running, event).expect("a held lease can be overdue");
    let ended = status.is_terminal();
    let wait = policy.unwrap_or_default().wait_for(lease.task, attempt, reap.entropy);
    let run_at = scope.now.plus(wait).millis();
    scope
        .connection
        .prepare_cached(
            "/* reap.write */ UPDATE task SET status = ?4, session = NULL, charged = ?5,
                    error = ?6, run_at = coalesce(?7, run_at), finished_at = ?8
             WHERE id = ?1 AND epoch = ?2 AND session = ?3 AND status = 2",
        )?
        .execute(params![
            lease.task.as_bytes(),
            lease.epoch,
            batch.session.as_bytes(),
            row::encode_status(status),
            attempt,
            row::encode_failure(&error),
            (!ended).then_some(run_at),
            ended.then_some(scope.now.millis()),
        ])?;
    if ended {
        bury(scope, lease.task, &error)
    } else {
        scope.wait(range, run_at, lease.task.as_bytes())
    }
}
