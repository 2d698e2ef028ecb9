//! Outcomes. Every write is fenced in its statement by task, epoch, session and RUNNING.

use std::time::Duration;

use duly_core::event::EventKind;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Outcome};
use duly_core::ports::store::Exchange;
use duly_core::state::Status;
use duly_core::task::{Failure, NewTask};
use rusqlite::{OptionalExtension as _, params};

use super::Scope;
use super::report::{write_log, write_progress};
use crate::sqlite::error::Result;
use crate::sqlite::index::grants::{Batch, Granted};
use crate::sqlite::row;
use crate::sqlite::task_state::ended::Ended;
use crate::sqlite::task_state::stored::stored_linked;
use crate::sqlite::task_state::waiting::{Wait, waiting};
use crate::sqlite::task_state::{EndedBy, Held};

pub(super) fn finish(scope: &mut Scope<'_>, exchange: &Exchange) -> Result<Vec<Finished>> {
    let mut ended = Ended::prepare(scope.connection, exchange.session)?;
    let each = exchange.finishes.iter();
    each.map(|item| {
        #[cfg(feature = "planted-bugs")]
        if let Some((holder, item)) = crate::sqlite::planted::forge(scope, item)? {
            let mut ended = Ended::prepare(scope.connection, holder)?;
            return one(scope, &mut ended, &item);
        }
        match one(scope, &mut ended, item)? {
            Finished::LeaseLost if was_acknowledged(scope, exchange, item)? => Ok(Finished::Done),
            answer => Ok(answer),
        }
    })
    .collect()
}

fn one(scope: &mut Scope<'_>, ended: &mut Ended<'_>, item: &Finish) -> Result<Finished> {
    let session = ended.session;
    if let Some(progress) = &item.progress {
        write_progress(scope, session, granted(item), progress)?;
    }
    if let Some(chunk) = &item.log {
        write_log(scope, session, granted(item), chunk)?;
    }
    let changed = match &item.outcome {
        Outcome::Success { result } => {
            let ended = ended.succeed(scope, item, result.as_deref())?;
            if let (true, Some(then)) = (ended, &item.then) {
                store_then(scope, item.task, then)?;
            }
            ended
        }
        Outcome::Fail { error } => ended.fail(scope, item, error)?,
        Outcome::Retry { error, entropy, after } => {
            retry(scope, ended, item, error, (*after, *entropy))?
        }
        Outcome::Release => wait(scope, session, item, Wait::Release)?,
    };
    if changed {
        if let Some(batch) = scope.index.grants.finish(scope.connection, item.task)? {
            scope.index.sessions.acknowledge(batch);
        }
        return Ok(Finished::Done);
    }
    refusal(scope, session, item)
}

/// Stores the tasks that come with the outcome of a task. Those that depend on it count as BLOCKED until that
/// moment.
fn store_then(scope: &mut Scope<'_>, parent: TaskId, tasks: &[NewTask]) -> Result<()> {
    for task in tasks {
        let lane = scope.index.lane_beyond_limit(scope.connection, &task.lane)?;
        let waits = stored_linked(scope, task, lane)? == Some(Status::Pending);
        if waits && task.dependencies().iter().any(|it| it.parent == parent) {
            scope.tell(EventKind::TaskUnblocked, task.id)?;
        }
    }
    Ok(())
}

fn granted(item: &Finish) -> Granted {
    Granted { task: item.task, epoch: item.epoch }
}

fn retry(
    scope: &mut Scope<'_>,
    ended: &mut Ended<'_>,
    item: &Finish,
    error: &Failure,
    (after, entropy): (Option<Duration>, u64),
) -> Result<bool> {
    let session = ended.session;
    let held = scope
        .connection
        .prepare_cached(
            "/* finish.retry */ SELECT charged, retries, back_off FROM task
             WHERE id = ? AND epoch = ? AND session = ? AND status = 2",
        )?
        .query_row(params![item.task.as_bytes(), item.epoch, session.as_bytes()], |row| {
            let policy = row::decode_back_off(row.get_ref(2)?, item.task.as_bytes());
            Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?, policy))
        })
        .optional()?;
    let Some((charged, retries, policy)) = held else { return Ok(false) };
    let attempt = charged + 1;
    if attempt > retries {
        return ended.fail(scope, item, error);
    }
    let run_at = scope.now.plus(policy?.wait_or(after, attempt, entropy)).millis();
    wait(scope, session, item, Wait::Retry { error, ran: item.ran, run_at })
}

fn wait(scope: &mut Scope<'_>, session: SessionId, item: &Finish, why: Wait<'_>) -> Result<bool> {
    waiting(scope, Held { session, lease: granted(item) }, EndedBy::Holder, why)
}

/// Why nothing changed: the same outcome was committed before, or the lease is gone.
fn refusal(scope: &Scope<'_>, session: SessionId, item: &Finish) -> Result<Finished> {
    let stored = scope
        .connection
        .prepare_cached(
            "/* finish.refusal */ SELECT epoch, session, status, lane FROM task WHERE id = ?",
        )?
        .query_row([item.task.as_bytes()], |row| {
            let holder = row.get::<_, Option<[u8; 16]>>(1)?;
            Ok((row.get::<_, u32>(0)?, holder, row.get::<_, i64>(2)?, row.get(3)?))
        })
        .optional()?;
    let Some((epoch, holder, status, lane)) = stored else { return Ok(Finished::Unknown) };
    if scope.index.is_foreign(session, lane)? {
        return Ok(Finished::Unknown);
    }
    let same_lease = epoch == item.epoch && holder == Some(*session.as_bytes());
    let status = row::decode_status(status, item.task.as_bytes())?;
    let same_outcome = match item.outcome {
        Outcome::Success { .. } => status == Status::Success,
        Outcome::Fail { .. } => status == Status::Failed,
        Outcome::Retry { .. } => matches!(status, Status::Pending | Status::Failed),
        Outcome::Release => status == Status::Pending,
    };
    Ok(if same_lease && same_outcome { Finished::Done } else { Finished::LeaseLost })
}

/// Whether this exchange is a repeated one, whose claim was granted the task again right after the
/// task was put back by this very outcome. What ended the lease otherwise has left another attempt.
fn was_acknowledged(scope: &Scope<'_>, exchange: &Exchange, item: &Finish) -> Result<bool> {
    let Some(claim) = &exchange.claim else { return Ok(false) };
    let batch = Batch { session: claim.session, sequence: claim.sequence };
    let next = Granted { task: item.task, epoch: item.epoch.saturating_add(1) };
    if !scope.index.grants.live(batch).contains(&next) {
        return Ok(false);
    }
    let mut statement = scope.connection.prepare_cached(
        "/* finish.was_acknowledged */ SELECT error FROM attempt WHERE task = ? AND epoch = ?",
    )?;
    let key = params![item.task.as_bytes(), item.epoch];
    let kept: Option<String> = statement.query_row(key, |row| row.get(0)).optional()?;
    Ok(match &item.outcome {
        Outcome::Release => kept.is_none(),
        Outcome::Retry { error, .. } => kept == Some(row::encode_failure(error)),
        Outcome::Success { .. } | Outcome::Fail { .. } => false,
    })
}
