//! Outcomes other than a plain success, and batches that name a task twice: item by item, on rows that
//! are locked. Plain successes are committed by the exchange itself.

use duly_core::lease::{Finish, Finished, Outcome};
use duly_core::ports::store::Exchange;
use duly_core::progress::Progress;
use duly_core::state::{Event, Status};
use duly_core::task::{Failure, NewTask};
use duly_core::time::Timestamp;
use foldhash::HashMap;
use uuid::Uuid;

use super::log::{self, Logged};
use super::{Scope, progress, then};
use crate::postgres::error::Result;
use crate::postgres::row;
use crate::postgres::task_state::changes::Changes;
use crate::postgres::task_state::state::TaskState;

/// Commits these outcomes of an exchange; answers in their order.
pub(super) async fn finish(
    scope: &mut Scope<'_>,
    exchange: &Exchange,
    items: &[&Finish],
) -> Result<Vec<Finished>> {
    let ids: Vec<_> = items.iter().map(|item| row::uuid(item.task)).collect();
    let mut states = TaskState::lock(scope, &ids).await?;
    let (mut changes, mut reports) = (Changes::default(), CommittedReports::default());
    let mut answers = Vec::with_capacity(items.len());
    for item in items {
        answers.push(one(scope, exchange, item, &mut states, (&mut changes, &mut reports)).await?);
    }
    // Before the outcomes: their edges are resolved and their workflows counted down after this.
    then::store(scope, &reports.then).await?;
    changes.write(scope).await?;
    progress::keep(scope, reports.progress).await?;
    log::keep(scope, reports.logs).await?;
    Ok(answers)
}

/// Reports that came with outcomes that are committed.
#[derive(Default)]
struct CommittedReports<'a> {
    progress: Vec<(Uuid, &'a Progress)>,
    logs: Vec<Logged<'a>>,
    /// Tasks that come with successes.
    then: Vec<&'a NewTask>,
}

impl<'a> CommittedReports<'a> {
    fn add(&mut self, state: &TaskState, item: &'a Finish, attempt: u32) {
        self.progress.extend(item.progress.as_ref().map(|progress| (state.id, progress)));
        self.logs.extend(item.log.as_ref().map(|chunk| {
            let (epoch, run) = (state.epoch, state.run);
            let attempt = row::encode_count(attempt);
            Logged { task: state.id, epoch, run, attempt, chunk }
        }));
    }
}

async fn one<'a>(
    scope: &Scope<'_>,
    exchange: &Exchange,
    item: &'a Finish,
    states: &mut HashMap<Uuid, TaskState>,
    (changes, reports): (&mut Changes, &mut CommittedReports<'a>),
) -> Result<Finished> {
    let session = row::session_uuid(exchange.session);
    let Some(state) = states.get_mut(&row::uuid(item.task)) else { return Ok(Finished::Unknown) };
    if scope.is_foreign(exchange.session, state.lane).await? {
        return Ok(Finished::Unknown);
    }
    let epoch = row::encode_count(item.epoch);
    if state.is_unacknowledged(session, epoch) {
        reports.add(state, item, state.charged);
        changes.acknowledge(state);
        let same = is_same(state.status, &item.outcome);
        return Ok(if same { Finished::Done } else { Finished::LeaseLost });
    }
    if !state.is_held(session, epoch) {
        let known =
            repeats(state, session, item) || was_committed(scope, exchange, item, state).await?;
        return Ok(if known { Finished::Done } else { Finished::LeaseLost });
    }
    reports.add(state, item, state.charged + 1);
    if let (Outcome::Success { .. }, Some(then)) = (&item.outcome, &item.then) {
        reports.then.extend(then.iter());
        // They may depend on it.
        state.links.get_or_insert_default();
    }
    conclude(scope, state, item, changes)?;
    Ok(Finished::Done)
}

fn conclude(
    scope: &Scope<'_>,
    state: &mut TaskState,
    item: &Finish,
    changes: &mut Changes,
) -> Result<()> {
    changes.end_lease(state, true);
    let granted_at = row::instant(state.granted_at.unwrap_or_default());
    state.started_at = item.started_at(scope.now, granted_at).map(Timestamp::millis);
    match &item.outcome {
        Outcome::Success { result } => {
            state.charged += 1;
            state.error = None;
            state.result = result.as_deref().map(str::to_owned);
            state.transition(Event::Succeed, scope.now.millis());
            changes.ended(state, None);
        }
        Outcome::Fail { error } => {
            changes.record_attempt(state, error);
            fail(scope, state, error, changes);
        }
        Outcome::Retry { error, entropy, after } => {
            let attempt = state.charged + 1;
            let wait = state.policy()?.wait_or(*after, attempt, *entropy);
            changes.record_attempt(state, error);
            retry(scope, state, error, scope.now.plus(wait).millis(), changes);
        }
        Outcome::Release => {
            state.transition(Event::Release, scope.now.millis());
            changes.waiting(state);
        }
    }
    Ok(())
}

fn fail(scope: &Scope<'_>, state: &mut TaskState, error: &Failure, changes: &mut Changes) {
    state.charged += 1;
    state.set_error(error);
    state.transition(Event::Fail, scope.now.millis());
    changes.ended(state, Some(error));
}

/// A failed attempt, which is recorded: the task waits for its next one, or has no more.
pub(super) fn retry(
    scope: &Scope<'_>,
    state: &mut TaskState,
    error: &Failure,
    run_at: i64,
    changes: &mut Changes,
) {
    if state.charged + 1 > state.retries {
        return fail(scope, state, error, changes);
    }
    state.charged += 1;
    state.set_error(error);
    state.run_at = run_at;
    state.transition(Event::Retry, scope.now.millis());
    changes.waiting(state);
}

/// Whether the same outcome was committed before.
fn repeats(state: &TaskState, session: Uuid, item: &Finish) -> bool {
    let same_lease = state.epoch == row::encode_count(item.epoch) && state.session == Some(session);
    same_lease && is_same(state.status, &item.outcome)
}

/// Whether a task in this state may be there by this outcome.
pub(super) fn is_same(status: Status, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Success { .. } => status == Status::Success,
        Outcome::Fail { .. } => status == Status::Failed,
        Outcome::Retry { .. } => matches!(status, Status::Pending | Status::Failed),
        Outcome::Release => status == Status::Pending,
    }
}

/// Whether this exchange is a repeated one, whose claim was granted the task again right after the
/// task was put back by this very outcome. What ended the lease otherwise has left another attempt.
async fn was_committed(
    scope: &Scope<'_>,
    exchange: &Exchange,
    item: &Finish,
    state: &TaskState,
) -> Result<bool> {
    let Some(claim) = &exchange.claim else { return Ok(false) };
    let next = row::encode_count(item.epoch.saturating_add(1));
    if !state.is_held(row::session_uuid(claim.session), next)
        || state.sequence != Some(row::encode_sequence(claim.sequence))
    {
        return Ok(false);
    }
    let select = "/* finish.was_committed */ SELECT error FROM duly.attempt
        WHERE task = $1 AND epoch = $2";
    let rows = scope.query(select, &[&state.id, &row::encode_count(item.epoch)]).await?;
    let kept: Option<String> = rows.first().map(|row| row.try_get(0)).transpose()?;
    Ok(match &item.outcome {
        Outcome::Release => kept.is_none(),
        Outcome::Retry { error, .. } => kept == Some(row::encode_failure(error)),
        Outcome::Success { .. } | Outcome::Fail { .. } => false,
    })
}
