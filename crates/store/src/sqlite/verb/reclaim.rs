//! Taking leases back from sessions that are gone.

use duly_core::id::{SessionId, TaskId};
use duly_core::limits::QUARANTINE_LOSSES;
use duly_core::task::Failure;
use rusqlite::{OptionalExtension as _, params};

use super::{Scope, Verb};
use crate::sqlite::error::Result;
use crate::sqlite::index::grants::Granted;
use crate::sqlite::index::heads::Range;
use crate::sqlite::task_state::ended::{TakenBack, taken_back};
use crate::sqlite::task_state::waiting::{Wait, waiting};
use crate::sqlite::task_state::{EndedBy, Held};

/// Why a lease is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum Reason {
    /// The session handed it back; nothing is counted.
    Release,
    /// The session died with it: one loss.
    Death,
}

/// Takes back the leases of an earlier process, which is gone, since only one at a time can have
/// the file open. Remote sessions go on. Answers how many leases there were.
pub(in crate::sqlite) struct Reclaim;

impl Verb for Reclaim {
    type Answer = usize;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<usize> {
        let uncovered = match scope.index.grants.remove_damaged(scope.connection)? {
            true => take_back_uncovered(scope)?,
            false => 0,
        };
        scope.index.sessions.end_damaged(scope.connection, scope.now)?;
        let sessions = &scope.index.sessions;
        let leases = scope.index.grants.leases(|session| sessions.get(session).is_none());
        for (session, lease) in &leases {
            take_back(scope, *session, *lease, Reason::Death)?;
        }
        scope.index.grants.sweep(scope.connection)?;
        scope.connection.execute(
            "/* session.end_local */ UPDATE session SET ended_at = ?
             WHERE ended_at IS NULL AND home = 0",
            [scope.now.millis()],
        )?;
        Ok(uncovered + leases.len())
    }
}

/// Takes back every running task that no readable batch holds: nothing else would ever end its lease.
/// Reads all tasks, so that it is done only where a batch was damaged. Answers how many there were.
fn take_back_uncovered(scope: &mut Scope<'_>) -> Result<usize> {
    let running = "/* reclaim.running */ SELECT id, epoch, session FROM task WHERE status = 2";
    let mut statement = scope.connection.prepare(running)?;
    let mut rows = statement.query([])?;
    let mut uncovered = Vec::new();
    while let Some(row) = rows.next()? {
        // A row that cannot be read stays for a person to look at.
        let (Ok(id), Ok(epoch)) = (row.get(0), row.get(1)) else { continue };
        let lease = Granted { task: TaskId::from_bytes(id), epoch };
        if scope.index.grants.batch_of(lease.task).is_none() {
            uncovered.push((lease, row.get(2).ok().map(SessionId::from_bytes)));
        }
    }
    for (lease, session) in &uncovered {
        let session = match session {
            Some(session) => *session,
            None => name_session(scope, *lease)?,
        };
        tracing::error!(task = %lease.task, %session, "a lease without a record is taken back");
        take_back(scope, session, *lease, Reason::Death)?;
    }
    Ok(uncovered.len())
}

/// Gives a running task whose session cannot be read one that never was.
fn name_session(scope: &Scope<'_>, lease: Granted) -> Result<SessionId> {
    let unknown = SessionId::from_bytes([0; 16]);
    let update = "/* reclaim.name */ UPDATE task SET session = ? WHERE id = ?";
    scope.connection.execute(update, params![unknown.as_bytes(), lease.task.as_bytes()])?;
    Ok(unknown)
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
            "/* reclaim.read */ SELECT lane, rank, losses FROM task
             WHERE id = ? AND epoch = ? AND session = ? AND status = 2",
        )?
        .query_row(params![lease.task.as_bytes(), lease.epoch, session.as_bytes()], |row| {
            let range = Range { lane: row.get(0)?, rank: row.get(1)? };
            Ok((range, row.get::<_, u32>(2)?))
        })
        .optional()?;
    let Some((range, losses)) = held else { return Ok(()) };
    let held = Held { session, lease };
    if reason == Reason::Release {
        return waiting(scope, held, EndedBy::Store, Wait::Release).map(drop);
    }
    let losses = losses + 1;
    let error = &Failure::worker_lost(losses);
    let rank = range.quarantined(losses >= QUARANTINE_LOSSES).rank;
    if losses < scope.rules.loss_limit {
        waiting(scope, held, EndedBy::Store, Wait::Loss { error, rank }).map(drop)
    } else {
        taken_back(scope, held, TakenBack::Abandoned { rank }, error)
    }
}
