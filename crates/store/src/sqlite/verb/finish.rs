//! Outcomes. Every write here is fenced in its statement by task, epoch, session and RUNNING.

use std::time::Duration;

use duly_core::id::SessionId;
use duly_core::lease::{Finish, Finished, Outcome};
use duly_core::ports::store::Exchange;
use duly_core::state::{Event, Status, transition};
use duly_core::task::Failure;
use duly_core::time::Timestamp;
use rusqlite::{CachedStatement, OptionalExtension as _, params};

use super::Scope;
use super::dead::{bury, record};
use super::report::{write_log, write_progress};
use crate::sqlite::error::Result;
use crate::sqlite::index::grants::{Batch, Granted};
use crate::sqlite::index::heads::Range;
use crate::sqlite::row;

pub(super) fn finish(scope: &mut Scope<'_>, exchange: &Exchange) -> Result<Vec<Finished>> {
    // Prepared once: nearly every item of a batch needs this statement and no other.
    let session = exchange.session;
    let mut end = End { statement: scope.connection.prepare_cached(END)?, session };
    let each = exchange.finishes.iter();
    each.map(|item| {
        #[cfg(feature = "planted-bugs")]
        if let Some((holder, item)) = crate::sqlite::planted::forge(scope, item)? {
            let statement = scope.connection.prepare_cached(END)?;
            return one(scope, &mut End { statement, session: holder }, &item);
        }
        match one(scope, &mut end, item)? {
            Finished::LeaseLost if was_heard(scope, exchange, item)? => Ok(Finished::Done),
            answer => Ok(answer),
        }
    })
    .collect()
}

fn one(scope: &mut Scope<'_>, end: &mut End<'_>, item: &Finish) -> Result<Finished> {
    let session = end.session;
    if let Some(progress) = &item.progress {
        write_progress(scope, session, granted(item), progress)?;
    }
    if let Some(chunk) = &item.log {
        write_log(scope, session, granted(item), chunk)?;
    }
    let changed = match &item.outcome {
        Outcome::Success { result } => {
            end.apply(scope.now, item, Event::Succeed, result.as_deref(), None)?
        }
        Outcome::Fail { error } => {
            record(scope, session, granted(item), error, item.ran)?;
            fail(scope, end, item, error)?
        }
        Outcome::Retry { error, entropy, after } => {
            retry(scope, end, item, error, (*after, *entropy))?
        }
        Outcome::Release => put_back(scope, session, item, Back::Release)?,
    };
    if changed {
        if let Some(batch) = scope.index.grants.finish(scope.connection, item.task)? {
            scope.index.sessions.heard(batch);
        }
        return Ok(Finished::Done);
    }
    refusal(scope, session, item)
}

const END: &str = "/* finish.end */ UPDATE task SET status = ?4, finished_at = ?5, result = ?6,
        error = ?7, charged = charged + 1, started_at = max(granted_at, ?5 - ?8)
    WHERE id = ?1 AND epoch = ?2 AND session = ?3 AND status = 2";

/// Ends runs of tasks that this session holds.
struct End<'a> {
    statement: CachedStatement<'a>,
    session: SessionId,
}

impl End<'_> {
    fn apply(
        &mut self,
        now: Timestamp,
        item: &Finish,
        event: Event,
        result: Option<&str>,
        error: Option<&Failure>,
    ) -> Result<bool> {
        let status = transition(Status::Running, event).expect("a running task can end");
        let changed = self.statement.execute(params![
            item.task.as_bytes(),
            item.epoch,
            self.session.as_bytes(),
            row::encode_status(status),
            now.millis(),
            result,
            error.map(row::encode_failure),
            item.ran.map(row::encode_millis),
        ])?;
        Ok(changed > 0)
    }
}

fn granted(item: &Finish) -> Granted {
    Granted { task: item.task, epoch: item.epoch }
}

fn fail(scope: &Scope<'_>, end: &mut End<'_>, item: &Finish, error: &Failure) -> Result<bool> {
    let changed = end.apply(scope.now, item, Event::Fail, None, Some(error))?;
    if changed {
        bury(scope, item.task, error)?;
    }
    Ok(changed)
}

fn retry(
    scope: &mut Scope<'_>,
    end: &mut End<'_>,
    item: &Finish,
    error: &Failure,
    (after, entropy): (Option<Duration>, u64),
) -> Result<bool> {
    let session = end.session;
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
    record(scope, session, granted(item), error, item.ran)?;
    if attempt > retries {
        return fail(scope, end, item, error);
    }
    let run_at = scope.now.plus(policy?.wait_or(after, attempt, entropy)).millis();
    put_back(scope, session, item, Back::Retry { run_at, error })
}

/// How a task goes back to waiting.
enum Back<'a> {
    Retry { run_at: i64, error: &'a Failure },
    Release,
}

fn put_back(
    scope: &mut Scope<'_>,
    session: SessionId,
    item: &Finish,
    back: Back<'_>,
) -> Result<bool> {
    let (event, charge, run_at, error) = match back {
        Back::Retry { run_at, error } => (Event::Retry, 1, Some(run_at), Some(error)),
        Back::Release => (Event::Release, 0, None, None),
    };
    let status = transition(Status::Running, event).expect("a running task can wait again");
    let waits = scope
        .connection
        .prepare_cached(
            "/* finish.put_back */ UPDATE task SET status = ?4, charged = charged + ?5,
                    run_at = coalesce(?6, run_at), error = coalesce(?7, error)
             WHERE id = ?1 AND epoch = ?2 AND session = ?3 AND status = 2
             RETURNING lane, rank, run_at",
        )?
        .query_row(
            params![
                item.task.as_bytes(),
                item.epoch,
                session.as_bytes(),
                row::encode_status(status),
                charge,
                run_at,
                error.map(row::encode_failure),
            ],
            |row| Ok((Range { lane: row.get(0)?, rank: row.get(1)? }, row.get(2)?)),
        )
        .optional()?;
    let Some((range, run_at)) = waits else { return Ok(false) };
    #[cfg(feature = "planted-bugs")]
    if charge > 0 {
        crate::sqlite::planted::reset_epoch(scope, item.task)?;
    }
    scope.wait(range, run_at, item.task.as_bytes())?;
    Ok(true)
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
fn was_heard(scope: &Scope<'_>, exchange: &Exchange, item: &Finish) -> Result<bool> {
    let Some(claim) = &exchange.claim else { return Ok(false) };
    let batch = Batch { session: claim.session, sequence: claim.sequence };
    let next = Granted { task: item.task, epoch: item.epoch.saturating_add(1) };
    if !scope.index.grants.live(batch).contains(&next) {
        return Ok(false);
    }
    let mut statement = scope.connection.prepare_cached(
        "/* finish.was_heard */ SELECT error FROM attempt WHERE task = ? AND epoch = ?",
    )?;
    let key = params![item.task.as_bytes(), item.epoch];
    let kept: Option<String> = statement.query_row(key, |row| row.get(0)).optional()?;
    Ok(match &item.outcome {
        Outcome::Release => kept.is_none(),
        Outcome::Retry { error, .. } => kept == Some(row::encode_failure(error)),
        Outcome::Success { .. } | Outcome::Fail { .. } => false,
    })
}
