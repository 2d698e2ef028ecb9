//! Replayed: SUCCESS, FAILED or CANCELLED → PENDING or BLOCKED, as the next run of the task.

use duly_core::event::EventKind;
use duly_core::id::TaskId;
use duly_core::state::{Event, Status, transition};
use rusqlite::params;

use super::Scope;
use super::attempts::record_success;
use super::blocked::{Blocked, blocked, opened};
use crate::sqlite::error::Result;
use crate::sqlite::row;
use crate::sqlite::verb::control::Found;
use crate::sqlite::verb::report::forget_progress;

/// Opens the next run of a task, due at this time. What is left of the run before is its attempts and
/// their logs: the dead letter and the progress go. Without a session no outcome of the run before can
/// be taken for one of this run.
pub(in crate::sqlite) fn replayed(scope: &mut Scope<'_>, found: &Found, run_at: i64) -> Result<()> {
    open_run(scope, found, Event::Replay, run_at)?;
    scope.wait(found.range.quarantined(false), run_at, found.task.as_bytes())
}

/// Opens the next run of a task that is BLOCKED until so many edges are satisfied. One of them may be
/// broken.
pub(in crate::sqlite) fn reblocked(
    scope: &mut Scope<'_>,
    found: &Found,
    edges: (u32, bool),
) -> Result<()> {
    let now = scope.now.millis();
    open_run(scope, found, Event::Block, now)?;
    let range = found.range.quarantined(false);
    blocked(scope, Blocked { task: found.task, range }, edges, Some(0))
}

fn open_run(scope: &mut Scope<'_>, found: &Found, event: Event, run_at: i64) -> Result<()> {
    let status = transition(found.status, event).expect("a task that has ended can run again");
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
    scope.tell(EventKind::TaskReplayed, found.task)?;
    forget_progress(scope, found.task)?;
    if let (_, Some(workflow)) = &found.links {
        opened(scope, workflow)?;
    }
    Ok(())
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
