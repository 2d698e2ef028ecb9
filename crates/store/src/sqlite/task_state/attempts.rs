//! The records of attempts, kept when an attempt ends other than by a success, whose record is the
//! row of its task.

use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::limits::ATTEMPTS;
use duly_core::task::Failure;
use rusqlite::{OptionalExtension as _, params};

use super::{Held, Scope};
use crate::sqlite::error::Result;
use crate::sqlite::row;
use crate::sqlite::verb::report::forget_logs;

/// Keeps an attempt that is about to fail, if the lease lives. Where it is not known how long the
/// handler ran, the attempt counts from its grant.
pub(super) fn record_failure(
    scope: &Scope<'_>,
    Held { session, lease }: Held,
    error: &Failure,
    ran: Option<Duration>,
) -> Result<()> {
    scope
        .connection
        .prepare_cached(
            "/* attempt.record */ INSERT INTO attempt (task, epoch, run, attempt, started_at,
                    ended_at, session, error)
             SELECT id, epoch, run, charged + 1, max(granted_at, ifnull(?4 - ?6, granted_at)), ?4,
                    session, ?5 FROM task
             WHERE id = ?1 AND epoch = ?2 AND session = ?3 AND status = 2
             ON CONFLICT (task, epoch) DO NOTHING",
        )?
        .execute(params![
            lease.task.as_bytes(),
            lease.epoch,
            session.as_bytes(),
            scope.now.millis(),
            row::encode_failure(error),
            ran.map(row::encode_millis),
        ])?;
    // There are never more attempts than grants.
    if lease.epoch as usize > ATTEMPTS {
        forget_old(scope, lease.task)?;
    }
    Ok(())
}

/// Keeps the attempt by which a task has succeeded that is about to be replayed. Until then the row of
/// the task is its record.
pub(super) fn record_success(scope: &Scope<'_>, task: TaskId, epoch: u32) -> Result<()> {
    scope
        .connection
        .prepare_cached(
            "/* attempt.record_success */ INSERT INTO attempt (task, epoch, run, attempt, started_at,
                    ended_at, session, error)
             SELECT id, epoch, run, charged, coalesce(started_at, granted_at, finished_at),
                    finished_at, session, ?3 FROM task WHERE id = ?1 AND epoch = ?2 AND status = 3
             ON CONFLICT (task, epoch) DO NOTHING",
        )?
        .execute(params![task.as_bytes(), epoch, row::NO_FAILURE])?;
    if epoch as usize > ATTEMPTS {
        forget_old(scope, task)?;
    }
    Ok(())
}

fn forget_old(scope: &Scope<'_>, task: TaskId) -> Result<()> {
    let surplus = scope
        .connection
        .prepare_cached(
            "/* attempt.surplus */ SELECT epoch FROM attempt WHERE task = ?
             ORDER BY epoch DESC LIMIT 1 OFFSET ?",
        )?
        .query_row(params![task.as_bytes(), ATTEMPTS], |row| row.get::<_, u32>(0))
        .optional()?;
    let Some(epoch) = surplus else { return Ok(()) };
    scope
        .connection
        .prepare_cached(
            "/* attempt.forget_old */ DELETE FROM attempt WHERE task = ? AND epoch <= ?",
        )?
        .execute(params![task.as_bytes(), epoch])?;
    forget_logs(scope, task, epoch)
}
