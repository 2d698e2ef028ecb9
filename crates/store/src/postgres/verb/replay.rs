//! Replay: open the next run of tasks that have ended.

use duly_core::ports::store::{Controlled, Replay, ReplayTasks};
use duly_core::state::{Event, Status, transition};
use uuid::Uuid;

use super::control::Tasks;
use super::{Scope, Verb, progress};
use crate::audited::{Audited, Subject};
use crate::postgres::error::Result;
use crate::postgres::row;
use crate::postgres::task_state::changes::Changes;
use crate::postgres::task_state::fields;
use crate::postgres::task_state::state::TaskState;

impl Verb for ReplayTasks {
    type Answer = Vec<Controlled>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let days: Vec<_> = self.tasks.iter().map(|replay| row::uuid(replay.task)).collect();
        scope.query("/* replay.keep_days */ SELECT duly.keep_days($1)", &[&days]).await?;
        let ids = self.tasks.iter().map(|replay| replay.task);
        let mut tasks = Tasks::lock(scope, &self.tenant, ids).await?;
        let (now, mut changes) = (scope.now, Changes::default());
        let mut opened = Vec::new();
        let mut one = |order: &Replay| {
            let run_at = order.run_at.map_or(now, |at| at.max(now)).millis();
            tasks.order(order.task, |state| {
                if state.run > row::encode_count(order.run) {
                    return true;
                }
                let can = transition(state.status, Event::Replay).is_ok();
                if can {
                    open_run(state, run_at, 0, &mut changes);
                    opened.push(state.id);
                }
                can
            })
        };
        let answers = self.tasks.iter().map(&mut one).collect();
        changes.write(scope).await?;
        start_afresh(scope, &opened, self.payload.as_deref()).await?;
        Ok(answers)
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

/// Opens the next run of a task that has ended. With open edges to it, the task is BLOCKED.
pub(super) fn open_run(state: &mut TaskState, run_at: i64, open_edges: i32, changes: &mut Changes) {
    if state.status == Status::Success {
        changes.record_success(state);
    }
    if state.sequence.is_some_and(|sequence| sequence < 0) {
        changes.acknowledge(state);
    }
    let event = if open_edges > 0 { Event::Block } else { Event::Replay };
    state.transition(event, run_at);
    state.run += 1;
    (state.charged, state.losses) = (0, 0);
    state.rank = state.range().with_quarantine(false).rank;
    state.run_at = run_at;
    (state.granted_at, state.finished_at) = (None, None);
    // Without a session no outcome of the run before can be taken for one of this run.
    state.session = None;
    (state.error, state.result) = (None, None);
    changes.replayed(state, open_edges);
}

/// What else a new run does not take over.
pub(super) async fn start_afresh(
    scope: &Scope<'_>,
    tasks: &[Uuid],
    payload: Option<&str>,
) -> Result<()> {
    if tasks.is_empty() {
        return Ok(());
    }
    progress::forget(scope, tasks).await?;
    if let Some(payload) = payload {
        fields::set_payload(scope, tasks, payload).await?;
    }
    Ok(())
}
