//! Blocked: tasks that wait for others. BLOCKED → PENDING as the last edge is satisfied; and what is
//! written of a new task that is tied to others.

use duly_core::event::EventKind;
use duly_core::id::TaskId;
use duly_core::state::{Event, Status, transition};
use duly_core::task::NewTask;
use duly_core::workflow::EdgeState;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

use super::Scope;
use crate::sqlite::error::Result;
use crate::sqlite::index::heads::Range;
use crate::sqlite::links::{ONE_CHILD, encode_condition, encode_edge, workflow_of};
use crate::sqlite::row;

/// A task that is BLOCKED.
#[derive(Clone, Copy, Debug)]
pub(in crate::sqlite) struct Blocked {
    pub(in crate::sqlite) task: TaskId,
    pub(in crate::sqlite) range: Range,
}

/// BLOCKED → PENDING.
pub(in crate::sqlite) struct Unblocked<'a> {
    update: CachedStatement<'a>,
    remove: CachedStatement<'a>,
}

impl<'a> Unblocked<'a> {
    /// Prepared once: a parent may release thousands.
    pub(in crate::sqlite) fn prepare(connection: &'a Connection) -> Result<Self> {
        let update = connection.prepare_cached(
            "/* task.unblock */ UPDATE task SET status = ?2, run_at = ?3 WHERE id = ?1 AND status = 0",
        )?;
        Ok(Self { update, remove: connection.prepare_cached(REMOVE)? })
    }

    /// Releases a task, which is due at this time.
    pub(in crate::sqlite) fn apply(
        &mut self,
        scope: &mut Scope<'_>,
        Blocked { task, range }: Blocked,
        run_at: i64,
    ) -> Result<()> {
        let status = transition(Status::Blocked, Event::Unblock).expect("a blocked task can start");
        let id = task.as_bytes();
        self.update.execute(params![id, row::encode_status(status), run_at])?;
        self.remove.execute(params![range.lane, id])?;
        scope.tell(EventKind::TaskUnblocked, task)?;
        scope.wait(range, run_at, id)
    }
}

const REMOVE: &str = "/* blocked.remove */ DELETE FROM blocked WHERE lane = ? AND task = ?";

/// Takes a task out of the table of blocked ones that is not released. The cascade may have had it.
pub(in crate::sqlite) fn not_blocked(scope: &Scope<'_>, range: Range, task: TaskId) -> Result<()> {
    let key = params![range.lane, task.as_bytes()];
    scope.connection.prepare_cached(REMOVE)?.execute(key)?;
    scope
        .connection
        .prepare_cached("/* doomed.remove */ DELETE FROM doomed WHERE task = ?")?
        .execute([task.as_bytes()])?;
    Ok(())
}

/// Puts a task into the table of blocked ones.
pub(in crate::sqlite) fn blocked(
    scope: &mut Scope<'_>,
    Blocked { task, range }: Blocked,
    (open, broken): (u32, bool),
    delay: Option<i64>,
) -> Result<()> {
    scope
        .connection
        .prepare_cached(
            "/* blocked.add */ INSERT INTO blocked (lane, task, open, delay_ms) VALUES (?, ?, ?, ?)",
        )?
        .execute(params![range.lane, task.as_bytes(), open, delay])?;
    if broken {
        scope
            .connection
            .prepare_cached("/* doomed.add */ INSERT OR IGNORE INTO doomed (task) VALUES (?)")?
            .execute([task.as_bytes()])?;
        scope.cascade();
    }
    Ok(())
}

/// Stores the edges of a new task and its part in a workflow. Answers how many edges are not satisfied,
/// and whether one is broken.
pub(super) fn tie(scope: &mut Scope<'_>, task: &NewTask) -> Result<(u32, bool)> {
    let (mut open, mut broken) = (0, false);
    let mut raise = scope.connection.prepare_cached(
        "/* stored.raise */ UPDATE task SET links = coalesce(links, 0) + ?2 WHERE id = ?1
         RETURNING status",
    )?;
    let mut insert = scope.connection.prepare_cached(
        "/* stored.edge */ INSERT INTO edge (parent, child, condition, state) VALUES (?, ?, ?, ?)",
    )?;
    for dependency in task.dependencies() {
        let parent = dependency.parent.as_bytes();
        let status = raise.query_row(params![parent, ONE_CHILD], |row| row.get(0))?;
        let state = EdgeState::of(dependency.on, row::decode_status(status, parent)?);
        let on = encode_condition(dependency.on);
        insert.execute(params![parent, task.id.as_bytes(), on, encode_edge(state)])?;
        open += u32::from(state != EdgeState::Satisfied);
        broken |= state == EdgeState::Broken;
    }
    if let Some(membership) = workflow_of(task) {
        scope
            .connection
            .prepare_cached(
                "/* stored.member */ INSERT INTO member (workflow, task, key) VALUES (?, ?, ?)",
            )?
            .execute(params![membership.id.as_bytes(), task.id.as_bytes(), membership.key])?;
        opened(scope, membership.id.as_bytes())?;
    }
    Ok((open, broken))
}

/// One more task of a workflow is open: a new one, or one that runs again. A workflow that had ended is
/// open again; one that is being cancelled or fails fast has one more task to cancel.
pub(in crate::sqlite) fn opened(scope: &mut Scope<'_>, workflow: &[u8; 16]) -> Result<()> {
    let swept: Option<bool> = scope
        .connection
        .prepare_cached(
            "/* workflow.opened */ UPDATE workflow
             SET open = open + 1, status = 0, finished_at = NULL,
                 cancelled = iif(status = 0, cancelled, NULL),
                 sweep = iif(status = 0 AND (cancelled IS NOT NULL OR failing), 1, NULL)
             WHERE id = ? RETURNING sweep IS NOT NULL",
        )?
        .query_row([workflow], |row| row.get(0))
        .optional()?;
    if swept == Some(true) {
        scope.cascade();
    }
    Ok(())
}
