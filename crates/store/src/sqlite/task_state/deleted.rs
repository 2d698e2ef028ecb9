//! Deleted: an ended task with everything about it. The verb `delete` and the retention sweep both
//! delete here.

use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_core::time::Timestamp;
use rusqlite::params;

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

/// Deletes a task that ended in this state, before this time if one is given. Whether it did: a task
/// that has moved on stays.
pub(in crate::sqlite) fn deleted(
    scope: &Scope<'_>,
    task: TaskId,
    status: Status,
    before: Option<Timestamp>,
) -> Result<bool> {
    assert!(status.is_terminal(), "only ended tasks are deleted");
    let deleted = scope
        .connection
        .prepare_cached(
            "/* delete */ DELETE FROM task WHERE id = ?1 AND status = ?2
             AND (?3 IS NULL OR finished_at < ?3)",
        )?
        .execute(params![
            task.as_bytes(),
            row::encode_status(status),
            before.map(Timestamp::millis)
        ])?;
    if deleted == 0 {
        return Ok(false);
    }
    for statement in BESIDES {
        scope.connection.prepare_cached(statement)?.execute([task.as_bytes()])?;
    }
    Ok(true)
}
