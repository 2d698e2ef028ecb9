//! Waiting: RUNNING → PENDING.

use std::time::Duration;

use duly_core::event::EventKind;
use duly_core::state::{Event, Status, transition};
use duly_core::task::Failure;
use rusqlite::{OptionalExtension as _, params};

use super::attempts::record_failure;
use super::{EndedBy, Held, Scope};
use crate::sqlite::error::Result;
use crate::sqlite::index::heads::Range;
use crate::sqlite::row;

/// Why a task waits again.
#[derive(Clone, Copy, Debug)]
pub(in crate::sqlite) enum Wait<'a> {
    /// An attempt failed, and another one is due at this time. It is charged and recorded.
    Retry { error: &'a Failure, ran: Option<Duration>, run_at: i64 },
    /// Its worker died. The attempt is recorded and counts as a loss; the task keeps its run time.
    Loss { error: &'a Failure, rank: u8 },
    /// Nothing ran. The task is as it was before it was granted.
    Release,
}

const WAIT: &str = "/* task.wait */ UPDATE task SET status = ?4, session = iif(?5, session, NULL),
        charged = charged + ?6, losses = losses + ?7, run_at = coalesce(?8, run_at),
        error = coalesce(?9, error), rank = coalesce(?10, rank)
    WHERE id = ?1 AND epoch = ?2 AND session = ?3 AND status = 2
    RETURNING lane, rank, run_at";

/// Lets a task wait again in the due table. Whether it did: not if the lease is gone.
pub(in crate::sqlite) fn waiting(
    scope: &mut Scope<'_>,
    held: Held,
    by: EndedBy,
    why: Wait<'_>,
) -> Result<bool> {
    let (event, kind) = match why {
        Wait::Retry { error, ran, .. } => {
            record_failure(scope, held, error, ran)?;
            (Event::Retry, EventKind::TaskRetried)
        }
        Wait::Loss { error, .. } => {
            record_failure(scope, held, error, None)?;
            (Event::Lose, EventKind::TaskLost)
        }
        Wait::Release => (Event::Release, EventKind::TaskReleased),
    };
    let status = transition(Status::Running, event).expect("a running task can wait again");
    let (run_at, error) = match why {
        Wait::Retry { run_at, error, .. } => (Some(run_at), Some(row::encode_failure(error))),
        Wait::Loss { .. } | Wait::Release => (None, None),
    };
    let rank = if let Wait::Loss { rank, .. } = why { Some(rank) } else { None };
    let task = held.lease.task;
    let waits = scope
        .connection
        .prepare_cached(WAIT)?
        .query_row(
            params![
                task.as_bytes(),
                held.lease.epoch,
                held.session.as_bytes(),
                row::encode_status(status),
                by == EndedBy::Holder,
                event == Event::Retry,
                event == Event::Lose,
                run_at,
                error,
                rank,
            ],
            |row| Ok((Range { lane: row.get(0)?, rank: row.get(1)? }, row.get(2)?)),
        )
        .optional()?;
    let Some((range, run_at)) = waits else { return Ok(false) };
    #[cfg(feature = "planted-bugs")]
    if event != Event::Release {
        crate::sqlite::planted::reset_epoch(scope, task)?;
    }
    scope.tell(kind, task)?;
    scope.wait(range, run_at, task.as_bytes())?;
    Ok(true)
}
