//! Replayed: SUCCESS, FAILED or CANCELLED → PENDING, as the next run of the task.

use duly_core::id::TaskId;
use duly_core::state::Status;
use rusqlite::params;

use super::Scope;
use super::attempts::record_success;
use crate::sqlite::error::Result;
use crate::sqlite::row;
use crate::sqlite::verb::control::Found;
use crate::sqlite::verb::report::forget_progress;

/// Opens the next run of a task, due at this time. What is left of the run before is its attempts and
/// their logs: the dead letter and the progress go. Without a session no outcome of the run before can
/// be taken for one of this run.
pub(in crate::sqlite) fn replayed(
    scope: &mut Scope<'_>,
    found: &Found,
    status: Status,
    run_at: i64,
) -> Result<()> {
    match found.status {
        Status::Failed => delete_dead_letter(scope, found.task)?,
        Status::Success => record_success(scope, found.task, found.epoch)?,
        _ => {}
    }
    let range = found.range.quarantined(false);
    scope
        .connection
        .prepare_cached(
            "/* replay */ UPDATE task SET status = ?4, run = run + 1, charged = 0, losses = 0,
                    run_at = ?5, granted_at = NULL, started_at = NULL, finished_at = NULL, session = NULL,
                    result = NULL, error = NULL, rank = ?6
             WHERE id = ?1 AND epoch = ?2 AND status = ?3",
        )?
        .execute(params![
            found.task.as_bytes(),
            found.epoch,
            row::encode_status(found.status),
            row::encode_status(status),
            run_at,
            range.rank,
        ])?;
    forget_progress(scope, found.task)?;
    scope.wait(range, run_at, found.task.as_bytes())
}

/// Takes a task out of the dead-letter queue that is about to leave the state FAILED.
fn delete_dead_letter(scope: &Scope<'_>, task: TaskId) -> Result<()> {
    scope
        .connection
        .prepare_cached(
            "/* dlq.remove */ DELETE FROM dlq WHERE task = ?1
             AND failed_at = (SELECT finished_at FROM task WHERE id = ?1)",
        )?
        .execute([task.as_bytes()])?;
    Ok(())
}
