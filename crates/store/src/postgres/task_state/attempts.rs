//! Attempts that have ended, of which each task keeps the last ones.

use duly_core::limits::ATTEMPTS;
use duly_core::task::Failure;
use uuid::Uuid;

use super::state::{TaskState, each};
use crate::postgres::error::Result;
use crate::postgres::row;
use crate::postgres::verb::Scope;

#[derive(Debug)]
pub(super) struct Attempt {
    task: Uuid,
    epoch: i32,
    run: i32,
    number: i32,
    started_at: i64,
    session: Option<Uuid>,
    error: String,
    /// `None` for now.
    ended_at: Option<i64>,
}

impl Attempt {
    /// An attempt that is about to end with an error.
    pub(super) fn failed(state: &TaskState, error: &Failure) -> Self {
        Self {
            task: state.id,
            epoch: state.epoch,
            run: state.run,
            number: row::encode_count(state.charged + 1),
            started_at: state.started_at.or(state.granted_at).unwrap_or_default(),
            session: state.session,
            error: row::encode_failure(error),
            ended_at: None,
        }
    }

    /// The attempt by which a task has succeeded.
    pub(super) fn succeeded(state: &TaskState) -> Self {
        let started_at = state.start().or(state.granted_at).or(state.finished_at);
        Self {
            task: state.id,
            epoch: state.epoch,
            run: state.run,
            number: row::encode_count(state.charged),
            started_at: started_at.unwrap_or_default(),
            session: state.session,
            error: row::NO_FAILURE.to_owned(),
            ended_at: state.finished_at,
        }
    }
}

pub(super) async fn record(scope: &Scope<'_>, attempts: &[Attempt]) -> Result<()> {
    if attempts.is_empty() {
        return Ok(());
    }
    let insert = "/* attempt.record */ INSERT INTO duly.attempt
            (task, epoch, run, attempt, started_at, ended_at, session, error)
        SELECT * FROM unnest($1::uuid[], $2::integer[], $3::integer[], $4::integer[],
                             $5::bigint[], $6::bigint[], $7::uuid[], $8::text[])
        ON CONFLICT (task, epoch) DO NOTHING";
    scope
        .execute(
            insert,
            &[
                &each(attempts, |it| it.task),
                &each(attempts, |it| it.epoch),
                &each(attempts, |it| it.run),
                &each(attempts, |it| it.number),
                &each(attempts, |it| it.started_at),
                &each(attempts, |it| it.ended_at.unwrap_or(scope.now.millis())),
                &each(attempts, |it| it.session),
                &each(attempts, |it| it.error.as_str()),
            ],
        )
        .await?;
    // There are never more attempts than grants.
    let many = |it: &&Attempt| it.epoch.unsigned_abs() as usize > ATTEMPTS;
    for attempt in attempts.iter().filter(many) {
        forget_old(scope, attempt.task).await?;
    }
    Ok(())
}

/// Deletes all but the last attempts of a task, and their logs.
async fn forget_old(scope: &Scope<'_>, task: Uuid) -> Result<()> {
    let delete = "/* attempt.forget_old */ WITH old AS (
            SELECT epoch FROM duly.attempt WHERE task = $1 ORDER BY epoch DESC OFFSET $2 LIMIT 1
        ), logs AS (
            DELETE FROM duly.log USING old WHERE log.task = $1 AND log.epoch <= old.epoch
        )
        DELETE FROM duly.attempt USING old WHERE attempt.task = $1 AND attempt.epoch <= old.epoch";
    let kept = i64::try_from(ATTEMPTS).expect("a small number");
    scope.execute(delete, &[&task, &kept]).await?;
    Ok(())
}
