//! Deleted: an ended task with everything about it. The verb `delete` and the retention sweep both
//! delete here.

use duly_core::event::EventKind;
use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_core::time::Timestamp;
use rusqlite::{OptionalExtension as _, params};

use super::Scope;
use crate::sqlite::error::Result;
use crate::sqlite::row;

/// What goes with a task, one statement per table. A table that holds something about tasks has
/// its line here, unless a row of it may outlive its task, as idempotency keys may.
const BESIDES: [&str; 5] = [
    "/* delete.attempts */ DELETE FROM attempt WHERE task = ?",
    "/* delete.dead_letter */ DELETE FROM dlq WHERE task = ?",
    "/* delete.payload */ DELETE FROM payload WHERE task = ?",
    "/* delete.progress */ DELETE FROM progress WHERE task = ?",
    "/* delete.log */ DELETE FROM log WHERE task = ?",
];

/// What goes with a task that is tied to others.
const LINKS: [&str; 4] = [
    "/* delete.edges_from */ DELETE FROM edge WHERE parent = ?1",
    "/* delete.edges_to */ DELETE FROM edge WHERE child = ?1",
    "/* delete.member */ DELETE FROM member WHERE task = ?1 AND workflow = ?2",
    "/* delete.workflow */ DELETE FROM workflow WHERE id = ?2 AND status <> 0
     AND NOT EXISTS (SELECT 1 FROM member WHERE workflow = ?2) AND ?1 IS NOT NULL",
];

/// Whether tasks that depend on this one have not ended.
pub(in crate::sqlite) fn has_open_children(scope: &Scope<'_>, task: TaskId) -> Result<bool> {
    let mut statement = scope.connection.prepare_cached(
        "/* delete.open_children */ SELECT 1 FROM edge JOIN task ON task.id = edge.child
         WHERE edge.parent = ? AND task.status <= 2 LIMIT 1",
    )?;
    Ok(statement.exists([task.as_bytes()])?)
}

/// Deletes a task that ended in this state, before this time if one is given. Whether it did: a task
/// that has moved on stays, and so does one that an open task depends on.
pub(in crate::sqlite) fn deleted(
    scope: &Scope<'_>,
    task: TaskId,
    status: Status,
    before: Option<Timestamp>,
) -> Result<bool> {
    assert!(status.is_terminal(), "only ended tasks are deleted");
    let event = scope.foretell(EventKind::TaskDeleted, task)?;
    let deleted = scope
        .connection
        .prepare_cached(
            "/* delete */ DELETE FROM task WHERE id = ?1 AND status = ?2
             AND (?3 IS NULL OR finished_at < ?3)
             AND (links IS NULL OR NOT EXISTS (SELECT 1 FROM edge JOIN task AS child
                 ON child.id = edge.child WHERE edge.parent = ?1 AND child.status <= 2))
             RETURNING links, workflow",
        )?
        .query_row(
            params![task.as_bytes(), row::encode_status(status), before.map(Timestamp::millis)],
            |row| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<[u8; 16]>>(1)?)),
        )
        .optional()?;
    let Some((links, workflow)) = deleted else { return Ok(false) };
    scope.tell_foretold(event);
    if links.is_some() || workflow.is_some() {
        for statement in LINKS {
            let mut statement = scope.connection.prepare_cached(statement)?;
            match statement.parameter_count() {
                1 => statement.execute(params![task.as_bytes()])?,
                _ => statement.execute(params![task.as_bytes(), workflow])?,
            };
        }
    }
    for statement in BESIDES {
        scope.connection.prepare_cached(statement)?.execute([task.as_bytes()])?;
    }
    Ok(true)
}
