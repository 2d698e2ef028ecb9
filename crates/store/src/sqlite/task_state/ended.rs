//! Ended: BLOCKED, PENDING or RUNNING → SUCCESS, FAILED or CANCELLED. A task that has failed is put into the
//! dead-letter queue.

use duly_core::error_group::ErrorGroup;
use duly_core::event::EventKind;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::Finish;
use duly_core::state::{Event, Status, transition};
use duly_core::task::Failure;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

use super::attempts::record_failure;
use super::blocked::not_blocked;
use super::settled::EndedLinked;
use super::{Held, Scope};
use crate::sqlite::error::Result;
use crate::sqlite::index::grants::Granted;
use crate::sqlite::row;
use crate::sqlite::verb::control::{Found, stop_waiting};

const END: &str = "/* finish.end */ UPDATE task SET status = ?4, finished_at = ?5, result = ?6,
        error = ?7, charged = charged + 1, started_at = max(granted_at, ?5 - ?8)
    WHERE id = ?1 AND epoch = ?2 AND session = ?3 AND status = 2
      AND links IS NULL AND workflow IS NULL";

/// The same for a task that is tied to others. What ties it is read before: RETURNING would open a
/// temporary table each time.
const END_LINKED: &str = "/* finish.end_linked */ UPDATE task SET status = ?4, finished_at = ?5,
        result = ?6, error = ?7, charged = charged + 1, started_at = max(granted_at, ?5 - ?8)
    WHERE id = ?1 AND epoch = ?2 AND session = ?3 AND status = 2";

const LINKS: &str = "/* finish.links */ SELECT links, workflow FROM task
    WHERE id = ? AND epoch = ? AND session = ? AND status = 2";

/// Ends tasks that this session holds by their outcomes.
pub(in crate::sqlite) struct Ended<'a> {
    connection: &'a Connection,
    statement: CachedStatement<'a>,
    /// [`LINKS`] and [`END_LINKED`], once they were needed.
    linked: Option<[CachedStatement<'a>; 2]>,
    /// Whether the last task was tied to others. The next one of the batch mostly is, too.
    expects_links: bool,
    pub(in crate::sqlite) session: SessionId,
}

impl<'a> Ended<'a> {
    /// Prepared once: nearly every item of a batch needs this statement and no other.
    pub(in crate::sqlite) fn prepare(
        connection: &'a Connection,
        session: SessionId,
    ) -> Result<Self> {
        let statement = connection.prepare_cached(END)?;
        Ok(Self { connection, statement, linked: None, expects_links: false, session })
    }

    /// Ends a task well. Whether it did: not if the lease is gone.
    pub(in crate::sqlite) fn succeed(
        &mut self,
        scope: &mut Scope<'_>,
        item: &Finish,
        result: Option<&str>,
    ) -> Result<bool> {
        self.apply(scope, item, Event::Succeed, result, None)
    }

    /// Ends a task for which there is no further attempt. Whether it did: not if the lease is gone.
    pub(in crate::sqlite) fn fail(
        &mut self,
        scope: &mut Scope<'_>,
        item: &Finish,
        error: &Failure,
    ) -> Result<bool> {
        let lease = Granted { task: item.task, epoch: item.epoch };
        record_failure(scope, Held { session: self.session, lease }, error, item.ran)?;
        let ended = self.apply(scope, item, Event::Fail, None, Some(error))?;
        if ended {
            insert_dead_letter(scope, item.task, error)?;
        }
        Ok(ended)
    }

    fn apply(
        &mut self,
        scope: &mut Scope<'_>,
        item: &Finish,
        event: Event,
        result: Option<&str>,
        error: Option<&Failure>,
    ) -> Result<bool> {
        let status = transition(Status::Running, event).expect("a running task can end");
        let error = error.map(row::encode_failure);
        let values = params![
            item.task.as_bytes(),
            item.epoch,
            self.session.as_bytes(),
            row::encode_status(status),
            scope.now.millis(),
            result,
            error,
            item.ran.map(row::encode_millis),
        ];
        if !self.expects_links && self.statement.execute(values)? > 0 {
            scope.tell(ended_kind(status), item.task)?;
            return Ok(true);
        }
        let [links, end] = match &mut self.linked {
            Some(prepared) => prepared,
            none => none.insert([
                self.connection.prepare_cached(LINKS)?,
                self.connection.prepare_cached(END_LINKED)?,
            ]),
        };
        let held = params![item.task.as_bytes(), item.epoch, self.session.as_bytes()];
        let links = links.query_row(held, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some(links) = links else { return Ok(false) };
        end.execute(values)?;
        scope.tell(ended_kind(status), item.task)?;
        self.expects_links = links != (None, None);
        scope.ended.extend(EndedLinked::new(item.task, status, links));
        Ok(true)
    }
}

/// Why the store fails a task that runs.
#[derive(Clone, Copy, Debug)]
pub(in crate::sqlite) enum TakenBack {
    /// Its last attempt is overdue, and charged.
    Overdue,
    /// It has died with its workers too often: one more loss, and this rank.
    Abandoned { rank: u8 },
}

/// Fails a task whose lease the store takes back. The attempt is recorded. Nothing happens if the
/// lease is gone.
pub(in crate::sqlite) fn taken_back(
    scope: &mut Scope<'_>,
    held: Held,
    why: TakenBack,
    error: &Failure,
) -> Result<()> {
    record_failure(scope, held, error, None)?;
    let (event, rank) = match why {
        TakenBack::Overdue => (Event::Fail, None),
        TakenBack::Abandoned { rank } => (Event::Abandon, Some(rank)),
    };
    let status = transition(Status::Running, event).expect("a held lease can be taken back");
    let ended = scope
        .connection
        .prepare_cached(
            "/* task.take_back */ UPDATE task SET status = ?4, session = NULL, charged = charged + ?5,
                    losses = losses + ?6, rank = coalesce(?7, rank), error = ?8, finished_at = ?9
             WHERE id = ?1 AND epoch = ?2 AND session = ?3 AND status = 2
             RETURNING links, workflow",
        )?
        .query_row(params![
            held.lease.task.as_bytes(),
            held.lease.epoch,
            held.session.as_bytes(),
            row::encode_status(status),
            event == Event::Fail,
            event == Event::Abandon,
            rank,
            row::encode_failure(error),
            scope.now.millis(),
        ], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some(links) = ended else { return Ok(()) };
    scope.tell(ended_kind(status), held.lease.task)?;
    scope.ended.extend(EndedLinked::new(held.lease.task, status, links));
    insert_dead_letter(scope, held.lease.task, error)
}

/// Ends a task that is blocked, waits or runs on the order of a person. A raised epoch refuses every later
/// outcome of a holder.
pub(in crate::sqlite) fn cancelled(
    scope: &mut Scope<'_>,
    found: &Found,
    status: Status,
    error: &str,
) -> Result<()> {
    let running = found.status == Status::Running;
    scope
        .connection
        .prepare_cached(
            "/* cancel */ UPDATE task SET status = ?4, epoch = epoch + ?5, finished_at = ?6, error = ?7
             WHERE id = ?1 AND epoch = ?2 AND status = ?3",
        )?
        .execute(params![
            found.task.as_bytes(),
            found.epoch,
            row::encode_status(found.status),
            row::encode_status(status),
            running,
            scope.now.millis(),
            error,
        ])?;
    scope.tell(ended_kind(status), found.task)?;
    scope.ended.extend(EndedLinked::new(found.task, status, found.links));
    match found.status {
        Status::Running => scope.index.grants.end(scope.connection, found.task),
        Status::Blocked => not_blocked(scope, found.range, found.task),
        _ => stop_waiting(scope, found),
    }
}

/// Fails a waiting task that cannot be read. Its due row is the caller's to remove.
pub(in crate::sqlite) fn spoiled(
    scope: &mut Scope<'_>,
    task: TaskId,
    failure: &Failure,
) -> Result<()> {
    let status = transition(Status::Pending, Event::Spoil).expect("a waiting task can spoil");
    let error = row::encode_failure(failure);
    let mut update = scope.connection.prepare_cached(
        "/* claim.spoil */ UPDATE task SET status = ?, finished_at = ?, error = ?
         WHERE id = ? AND status = 1 RETURNING links, workflow",
    )?;
    let key = params![row::encode_status(status), scope.now.millis(), error, task.as_bytes()];
    let links = update.query_row(key, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    if links.is_some() {
        scope.tell(ended_kind(status), task)?;
    }
    scope.ended.extend(links.and_then(|links| EndedLinked::new(task, status, links)));
    insert_dead_letter(scope, task, failure)
}

/// What there is to tell of a task that has ended in this state.
fn ended_kind(status: Status) -> EventKind {
    match status {
        Status::Success => EventKind::TaskSucceeded,
        Status::Failed => EventKind::TaskFailed,
        _ => EventKind::TaskCancelled,
    }
}

/// Puts a task that has just failed into the dead-letter queue.
fn insert_dead_letter(scope: &Scope<'_>, task: TaskId, error: &Failure) -> Result<()> {
    scope
        .connection
        .prepare_cached(
            "/* dlq.add */ INSERT INTO dlq (failed_at, task, lane, error_group)
             SELECT finished_at, id, lane, ?2 FROM task WHERE id = ?1",
        )?
        .execute(params![task.as_bytes(), ErrorGroup::of(error).to_bits()])?;
    Ok(())
}
