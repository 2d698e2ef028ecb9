//! Taking leases back from sessions that are gone.

use duly_core::id::SessionId;
use duly_core::limits::LOSSES;
use duly_core::state::{Event, Status, transition};
use duly_core::task::Failure;
use rusqlite::{OptionalExtension as _, params};

use super::{Scope, Verb};
use crate::sqlite::error::Result;
use crate::sqlite::index::grants::Granted;
use crate::sqlite::index::heads::Range;
use crate::sqlite::row;

/// Why a lease is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum Reason {
    /// The session handed it back; nothing is counted.
    Release,
    /// The session died with it: one loss.
    Death,
}

/// Takes back every lease: they belong to an earlier process, which is gone, since only one at a
/// time can have the file open. Answers how many there were.
pub(in crate::sqlite) struct ReclaimAll;

impl Verb for ReclaimAll {
    type Answer = usize;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<usize> {
        let leases = scope.index.grants.leases(None);
        for (session, lease) in &leases {
            take_back(scope, *session, *lease, Reason::Death)?;
        }
        scope.index.grants.sweep(scope.connection)?;
        scope.connection.execute(
            "/* session.end_all */ UPDATE session SET ended_at = ? WHERE ended_at IS NULL",
            [scope.now.millis()],
        )?;
        Ok(leases.len())
    }
}

/// Ends one lease from outside: the task waits again, or has died with its workers once too often.
pub(super) fn take_back(
    scope: &mut Scope<'_>,
    session: SessionId,
    lease: Granted,
    reason: Reason,
) -> Result<()> {
    scope.index.grants.end(scope.connection, lease.task)?;
    let held = scope
        .connection
        .prepare_cached(
            "/* reclaim.read */ SELECT lane, rank, run_at, losses FROM task
             WHERE id = ? AND epoch = ? AND session = ? AND status = 2",
        )?
        .query_row(params![lease.task.as_bytes(), lease.epoch, session.as_bytes()], |row| {
            let range = Range { lane: row.get(0)?, rank: row.get(1)? };
            Ok((range, row.get::<_, i64>(2)?, row.get::<_, u32>(3)?))
        })
        .optional()?;
    let Some((range, run_at, losses)) = held else { return Ok(()) };
    let (event, losses) = match reason {
        Reason::Release => (Event::Release, losses),
        Reason::Death if losses + 1 < LOSSES => (Event::Lose, losses + 1),
        Reason::Death => (Event::Abandon, losses + 1),
    };
    let status = transition(Status::Running, event).expect("a held lease can be taken back");
    let ended = status.is_terminal();
    let error = ended.then(|| {
        let message = format!("the worker died {losses} times while it ran this task");
        row::encode_failure(&Failure::new("WORKER_LOST", message))
    });
    scope
        .connection
        .prepare_cached(
            "/* reclaim.write */ UPDATE task SET status = ?4, session = NULL, losses = ?5,
                    error = coalesce(?6, error), finished_at = ?7
             WHERE id = ?1 AND epoch = ?2 AND session = ?3 AND status = 2",
        )?
        .execute(params![
            lease.task.as_bytes(),
            lease.epoch,
            session.as_bytes(),
            row::encode_status(status),
            losses,
            error,
            ended.then_some(scope.now.millis()),
        ])?;
    if !ended {
        scope.wait(range, run_at, lease.task.as_bytes())?;
    }
    Ok(())
}
