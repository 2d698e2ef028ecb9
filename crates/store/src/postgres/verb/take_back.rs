//! Taking leases back from sessions that have ended or lost them.

use duly_core::id::{SessionId, TaskId};
use duly_core::limits::QUARANTINE_LOSSES;
use duly_core::state::Event;
use duly_core::task::Failure;
use foldhash::HashSet;
use tokio_postgres::Row;
use uuid::Uuid;

use super::{Scope, Verb};
use crate::postgres::error::Result;
use crate::postgres::task_state::changes::Changes;
use crate::postgres::task_state::state::TaskState;
use crate::postgres::{row, settings};

/// Why a lease is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Nothing was done with it; nothing is counted.
    Release,
    /// The session died with it: one loss.
    Death,
}

/// One batch of leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) session: SessionId,
    pub(super) sequence: i64,
}

impl Batch {
    /// Reads session and sequence.
    pub(super) fn read(row: &Row) -> Result<Self> {
        Ok(Self { session: row::session_id(row.try_get(0)?), sequence: row.try_get(1)? })
    }

    /// Locks the tasks of a batch that it still holds, by their ids.
    pub(super) async fn lock(self, scope: &Scope<'_>) -> Result<Vec<TaskState>> {
        let session = row::session_uuid(self.session);
        let select = "/* grant.read */ SELECT tasks, epochs FROM duly.grant_log
            WHERE session = $1 AND sequence = $2";
        let rows = scope.query(select, &[&session, &self.sequence]).await?;
        let Some(grant) = rows.first() else { return Ok(Vec::new()) };
        let (tasks, epochs): (Vec<Uuid>, Vec<i32>) = (grant.try_get(0)?, grant.try_get(1)?);
        let mut states = TaskState::lock(scope, &tasks).await?;
        let held = tasks.iter().zip(epochs).filter_map(|(task, epoch)| {
            states.remove(task).filter(|state| state.is_held(session, epoch))
        });
        let mut held: Vec<_> = held.collect();
        held.sort_unstable_by_key(|state| state.id);
        Ok(held)
    }
}

/// Takes back what a session that has ended holds in one batch. Answers which tasks those were.
pub(super) struct TakeBack(pub(super) Batch);

impl Verb for TakeBack {
    type Answer = Vec<TaskId>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<TaskId>> {
        let session = row::session_uuid(self.0.session);
        let select = "/* session.ended */ SELECT died, unstarted FROM duly.session WHERE id = $1";
        let rows = scope.query(select, &[&session]).await?;
        let (died, unstarted): (bool, HashSet<Uuid>) = match rows.first() {
            Some(row) => (row.try_get(0)?, row.try_get::<_, Vec<_>>(1)?.into_iter().collect()),
            None => (true, HashSet::default()),
        };
        let limit = loss_limit(scope).await?;
        let mut changes = Changes::default();
        let mut tasks = Vec::new();
        for mut state in self.0.lock(scope).await? {
            let spared = !died || unstarted.contains(&state.id);
            let reason = if spared { Reason::Release } else { Reason::Death };
            tasks.push(row::task_id(state.id));
            take_back(scope, &mut state, reason, limit, &mut changes);
        }
        changes.write(scope).await?;
        let delete = "/* grant.forget */ DELETE FROM duly.grant_log
            WHERE session = $1 AND sequence = $2";
        scope.execute(delete, &[&session, &self.0.sequence]).await?;
        Ok(tasks)
    }
}

/// Ends one lease from outside: the task waits again, or has died with its workers once too often.
pub(super) fn take_back(
    scope: &Scope<'_>,
    state: &mut TaskState,
    reason: Reason,
    loss_limit: u32,
    changes: &mut Changes,
) {
    changes.end_lease(state, false);
    let now = scope.now.millis();
    if reason == Reason::Release {
        state.session = None;
        state.transition(Event::Release, now);
        return changes.waiting(state);
    }
    let losses = state.losses + 1;
    let error = Failure::worker_lost(losses);
    changes.record_attempt(state, &error);
    state.losses = losses;
    state.rank = state.range().with_quarantine(losses >= QUARANTINE_LOSSES).rank;
    state.session = None;
    if losses < loss_limit {
        state.transition(Event::Lose, now);
        return changes.waiting(state);
    }
    state.set_error(&error);
    state.transition(Event::Abandon, now);
    changes.ended(state, Some(&error));
}

/// After how many losses a task is failed.
pub(super) async fn loss_limit(scope: &Scope<'_>) -> Result<u32> {
    let rows = scope.query(settings::NEWEST, &[]).await?;
    let limit = match rows.first().map(settings::decode) {
        Some(Ok(newest)) => newest.settings.loss_limit,
        // They can be set again; until then tasks go on.
        Some(Err(fault)) => {
            tracing::error!(%fault, "the settings cannot be read; the defaults hold");
            None
        }
        None => None,
    };
    Ok(limit.unwrap_or(scope.store.rules.loss_limit))
}
