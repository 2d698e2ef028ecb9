//! What attempts tell while they run. Every write here is fenced in its statement by task, epoch,
//! session and RUNNING.

use duly_core::event::EventKind;
use duly_core::id::{SessionId, TaskId};
use duly_core::limits::{ATTEMPTS, LOG_BYTES, LOG_PIECE_BYTES, LOG_PIECES};
use duly_core::log::LogChunk;
use duly_core::ports::store::{Report, ReportItem, Reported};
use duly_core::progress::Progress;
use rusqlite::{OptionalExtension as _, params};

use super::{Scope, Verb};
use crate::sqlite::error::Result;
use crate::sqlite::index::grants::Granted;

impl Verb for Report {
    type Answer = Vec<Reported>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Reported>> {
        self.items.iter().map(|item| one(scope, self.session, item)).collect()
    }
}

fn one(scope: &Scope<'_>, session: SessionId, item: &ReportItem) -> Result<Reported> {
    let lease = Granted { task: item.task, epoch: item.epoch };
    let answer = match &item.progress {
        Some(progress) => {
            let answer = write_progress(scope, session, lease, progress)?;
            if answer == Reported::Done {
                scope.tell(EventKind::TaskProgressed, item.task)?;
            }
            answer
        }
        None => standing(scope, session, lease)?,
    };
    if let (Reported::Done, Some(chunk)) = (answer, &item.log) {
        write_log(scope, session, lease, chunk)?;
    }
    Ok(answer)
}

/// Keeps how far a task is, if the lease lives.
pub(super) fn write_progress(
    scope: &Scope<'_>,
    session: SessionId,
    lease: Granted,
    progress: &Progress,
) -> Result<Reported> {
    let Progress { done, total, message, checkpoint } = progress;
    let written = scope
        .connection
        .prepare_cached(
            "/* report.progress */ INSERT INTO progress (task, at, done, total, message, checkpoint)
             SELECT id, ?4, ?5, ?6, ?7, ?8 FROM task
             WHERE id = ?1 AND epoch = ?2 AND session = ?3 AND status = 2
             ON CONFLICT (task) DO UPDATE SET at = excluded.at, done = excluded.done,
                    total = excluded.total, message = excluded.message,
                    checkpoint = coalesce(excluded.checkpoint, checkpoint)",
        )?
        .execute(params![
            lease.task.as_bytes(),
            lease.epoch,
            session.as_bytes(),
            scope.now.millis(),
            done,
            total,
            message,
            checkpoint.as_deref(),
        ])?;
    if written > 0 { Ok(Reported::Done) } else { standing(scope, session, lease) }
}

/// Keeps what an attempt has logged beyond what is there, if the lease lives.
pub(super) fn write_log(
    scope: &Scope<'_>,
    session: SessionId,
    lease: Granted,
    chunk: &LogChunk,
) -> Result<()> {
    let last = last_piece(scope, lease)?;
    let known = last.as_ref().map_or(0, Piece::end);
    let Some((offset, text)) = chunk.beyond(known) else { return Ok(()) };
    let (end, grows) = (offset + text.len() as u64, last.filter(|last| last.takes(offset, text)));
    let written = match &grows {
        Some(piece) => grow(scope, session, lease, piece, text)?,
        None => add_piece(scope, session, lease, (offset, text))?,
    };
    if !written {
        return Ok(());
    }
    let kept_from = end.saturating_sub(LOG_BYTES as u64);
    if kept_from > 0 {
        forget_beginning(scope, lease, kept_from)?;
    }
    if grows.is_none() && known > 0 {
        forget_surplus(scope, lease)?;
    }
    let kept = u32::try_from(ATTEMPTS).expect("a small number");
    match lease.epoch.checked_sub(kept) {
        Some(up_to) if known == 0 => forget_logs(scope, lease.task, up_to),
        _ => Ok(()),
    }
}

/// Starts a piece of a log; whether the lease lives.
fn add_piece(
    scope: &Scope<'_>,
    session: SessionId,
    lease: Granted,
    (offset, text): (u64, &str),
) -> Result<bool> {
    let written = scope
        .connection
        .prepare_cached(
            "/* report.log */ INSERT INTO log (task, epoch, offset, at, run, attempt, text)
             SELECT id, epoch, ?4, ?5, run, charged + 1, ?6 FROM task
             WHERE id = ?1 AND epoch = ?2 AND session = ?3 AND status = 2",
        )?
        .execute(params![
            lease.task.as_bytes(),
            lease.epoch,
            session.as_bytes(),
            offset,
            scope.now.millis(),
            text,
        ])?;
    Ok(written > 0)
}

/// Adds to a piece of a log; whether the lease lives.
fn grow(
    scope: &Scope<'_>,
    session: SessionId,
    lease: Granted,
    piece: &Piece,
    text: &str,
) -> Result<bool> {
    let written = scope
        .connection
        .prepare_cached(
            "/* report.grow */ UPDATE log SET at = ?5, text = text || ?6
             WHERE task = ?1 AND epoch = ?2 AND offset = ?4 AND EXISTS
                (SELECT 1 FROM task WHERE id = ?1 AND epoch = ?2 AND session = ?3 AND status = 2)",
        )?
        .execute(params![
            lease.task.as_bytes(),
            lease.epoch,
            session.as_bytes(),
            piece.offset,
            scope.now.millis(),
            text,
        ])?;
    Ok(written > 0)
}

/// The last piece of an attempt's log.
struct Piece {
    offset: u64,
    bytes: usize,
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset + self.bytes as u64
    }

    /// Whether what is at this place becomes part of it.
    fn takes(&self, offset: u64, text: &str) -> bool {
        self.end() == offset && self.bytes + text.len() <= LOG_PIECE_BYTES
    }
}

fn last_piece(scope: &Scope<'_>, lease: Granted) -> Result<Option<Piece>> {
    let mut statement = scope.connection.prepare_cached(
        "/* report.last_piece */ SELECT offset, octet_length(text) FROM log
         WHERE task = ? AND epoch = ? ORDER BY offset DESC LIMIT 1",
    )?;
    let last = statement.query_row(params![lease.task.as_bytes(), lease.epoch], |row| {
        Ok(Piece { offset: row.get(0)?, bytes: row.get(1)? })
    });
    Ok(last.optional()?)
}

/// Drops all but the last pieces of a log.
fn forget_surplus(scope: &Scope<'_>, lease: Granted) -> Result<()> {
    scope
        .connection
        .prepare_cached(
            "/* report.forget_surplus */ DELETE FROM log
             WHERE task = ?1 AND epoch = ?2 AND offset <=
                (SELECT offset FROM log WHERE task = ?1 AND epoch = ?2
                 ORDER BY offset DESC LIMIT 1 OFFSET ?3)",
        )?
        .execute(params![lease.task.as_bytes(), lease.epoch, LOG_PIECES])?;
    Ok(())
}

/// Drops the pieces of a log before the one that holds its byte `kept_from`.
fn forget_beginning(scope: &Scope<'_>, lease: Granted, kept_from: u64) -> Result<()> {
    scope
        .connection
        .prepare_cached(
            "/* report.forget_beginning */ DELETE FROM log
             WHERE task = ?1 AND epoch = ?2 AND offset <
                (SELECT max(offset) FROM log WHERE task = ?1 AND epoch = ?2 AND offset <= ?3)",
        )?
        .execute(params![lease.task.as_bytes(), lease.epoch, kept_from])?;
    Ok(())
}

/// Drops the logs of a task's attempts up to this one.
pub(in crate::sqlite) fn forget_logs(scope: &Scope<'_>, task: TaskId, up_to: u32) -> Result<()> {
    scope
        .connection
        .prepare_cached("/* report.forget_logs */ DELETE FROM log WHERE task = ? AND epoch <= ?")?
        .execute(params![task.as_bytes(), up_to])?;
    Ok(())
}

/// Drops how far a task is: its next run starts from nothing.
pub(in crate::sqlite) fn forget_progress(scope: &Scope<'_>, task: TaskId) -> Result<()> {
    scope
        .connection
        .prepare_cached("/* report.forget_progress */ DELETE FROM progress WHERE task = ?")?
        .execute([task.as_bytes()])?;
    Ok(())
}

/// Whether a session may speak for a task.
pub(super) fn standing(scope: &Scope<'_>, session: SessionId, lease: Granted) -> Result<Reported> {
    let held = scope
        .connection
        .prepare_cached(
            "/* report.standing */ SELECT epoch = ?2 AND session IS ?3 AND status = 2, lane
             FROM task WHERE id = ?1",
        )?
        .query_row(params![lease.task.as_bytes(), lease.epoch, session.as_bytes()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    Ok(match held {
        None => Reported::Unknown,
        Some((_, lane)) if scope.index.is_foreign(session, lane)? => Reported::Unknown,
        Some((true, _)) => Reported::Done,
        Some((false, _)) => Reported::LeaseLost,
    })
}
