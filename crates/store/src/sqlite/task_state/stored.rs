//! Stored: a new task, PENDING, BLOCKED or already RUNNING.

use duly_core::event::EventKind;
use duly_core::id::SessionId;
use duly_core::state::Status;
use duly_core::task::NewTask;
use rusqlite::{CachedStatement, Connection, params};

use super::Scope;
use super::blocked::{Blocked, blocked, tie};
use super::settled::is_cancelled;
use crate::sqlite::error::Result;
use crate::sqlite::index::heads::Range;
use crate::sqlite::index::lanes::LaneId;
use crate::sqlite::links::workflow_of;
use crate::sqlite::{links, row};

/// The epoch of a task's first grant.
pub(in crate::sqlite) const FIRST_EPOCH: u32 = 1;

const FIRST_RUN: u32 = 1;

const INSERT: &str = "/* submit.insert */ INSERT INTO task (id, status, epoch, session, lane, rank,
        run_at, created_at, granted_at, run, charged, retries, losses, timeout_ms, back_off, labels,
        payload)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, 0, ?10, 0, ?11, ?12, ?13, ?14)
    ON CONFLICT (id) DO NOTHING";

/// The same for a task that is tied to others.
const INSERT_LINKED: &str =
    "/* submit.insert_linked */ INSERT INTO task (id, status, epoch, lane, rank,
        run_at, created_at, run, charged, retries, losses, timeout_ms, back_off, labels, payload,
        links, workflow)
    VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, 1, 0, ?7, 0, ?8, ?9, ?10, ?11, ?12, ?13)
    ON CONFLICT (id) DO NOTHING";

/// Stores new tasks.
pub(in crate::sqlite) struct Stored<'a> {
    insert: CachedStatement<'a>,
}

impl<'a> Stored<'a> {
    /// Prepared once: every task of a batch needs the statement.
    pub(in crate::sqlite) fn prepare(connection: &'a Connection) -> Result<Self> {
        Ok(Self { insert: connection.prepare_cached(INSERT)? })
    }

    /// Stores a task, which waits, or runs under the session it is handed off to. Whether it is new:
    /// a task whose id is stored already changes nothing.
    pub(in crate::sqlite) fn apply(
        &mut self,
        scope: &mut Scope<'_>,
        task: &NewTask,
        lane: LaneId,
        holder: Option<SessionId>,
    ) -> Result<bool> {
        let (status, epoch) = match holder {
            Some(_) => (Status::Running, FIRST_EPOCH),
            None => (Status::Pending, 0),
        };
        let run_at = task.due_at(scope.now).millis();
        let inline = task.payload.len() <= row::INLINE_PAYLOAD_BYTES;
        let inserted = self.insert.execute(params![
            task.id.as_bytes(),
            row::encode_status(status),
            epoch,
            holder.as_ref().map(SessionId::as_bytes),
            lane,
            task.priority.rank(),
            run_at,
            scope.now.millis(),
            holder.map(|_| scope.now.millis()),
            task.retries,
            row::encode_duration(task.timeout),
            row::encode_back_off(&task.back_off),
            row::encode_labels(&task.labels),
            inline.then_some(&*task.payload),
        ])?;
        if inserted == 0 {
            return Ok(false);
        }
        if !inline {
            insert_payload(scope, task)?;
        }
        scope.tell_known(EventKind::TaskCreated, (task.id, lane, FIRST_RUN, 0))?;
        if status == Status::Running {
            scope.tell_known(EventKind::TaskStarted, (task.id, lane, FIRST_RUN, epoch))?;
        }
        if status == Status::Pending {
            let range = Range { lane, rank: task.priority.rank() };
            scope.wait(range, run_at, task.id.as_bytes())?;
        }
        Ok(true)
    }
}

/// Stores a task that is tied to others: its edges and its part in a workflow too. It waits, or is
/// BLOCKED until its parents have ended. Nothing if it is not new.
pub(in crate::sqlite) fn stored_linked(
    scope: &mut Scope<'_>,
    task: &NewTask,
    lane: LaneId,
) -> Result<Option<Status>> {
    let Some(tied) = &task.links else { return Ok(None) };
    let run_at = task.due_at(scope.now).millis();
    let inline = task.payload.len() <= row::INLINE_PAYLOAD_BYTES;
    let inserted = scope.connection.prepare_cached(INSERT_LINKED)?.execute(params![
        task.id.as_bytes(),
        row::encode_status(Status::Pending),
        lane,
        task.priority.rank(),
        run_at,
        scope.now.millis(),
        task.retries,
        row::encode_duration(task.timeout),
        row::encode_back_off(&task.back_off),
        row::encode_labels(&task.labels),
        inline.then_some(&*task.payload),
        links::encode(tied),
        tied.workflow.as_ref().map(|it| *it.id.as_bytes()),
    ])?;
    if inserted == 0 {
        return Ok(None);
    }
    if !inline {
        insert_payload(scope, task)?;
    }
    scope.tell_known(EventKind::TaskCreated, (task.id, lane, FIRST_RUN, 0))?;
    let range = Range { lane, rank: task.priority.rank() };
    let (open, broken) = tie(scope, task)?;
    if open == 0 && !is_held_back(scope, task)? {
        scope.wait(range, run_at, task.id.as_bytes())?;
        return Ok(Some(Status::Pending));
    }
    let block = "/* stored.block */ UPDATE task SET status = 0 WHERE id = ?";
    scope.connection.prepare_cached(block)?.execute([task.id.as_bytes()])?;
    let delay = row::encode_duration(task.delay);
    blocked(scope, Blocked { task: task.id, range }, (open, broken), delay)?;
    Ok(Some(Status::Blocked))
}

/// Whether a task stays BLOCKED although its parents have ended: nothing of a cancelled workflow is
/// released, and the cascade cancels it.
fn is_held_back(scope: &Scope<'_>, task: &NewTask) -> Result<bool> {
    match workflow_of(task).filter(|_| !task.dependencies().is_empty()) {
        Some(membership) => is_cancelled(scope, *membership.id.as_bytes()),
        None => Ok(false),
    }
}

fn insert_payload(scope: &Scope<'_>, task: &NewTask) -> Result<()> {
    let insert = "/* submit.payload */ INSERT INTO payload (task, body) VALUES (?, ?)";
    let mut insert = scope.connection.prepare_cached(insert)?;
    insert.execute(params![task.id.as_bytes(), &*task.payload])?;
    Ok(())
}
