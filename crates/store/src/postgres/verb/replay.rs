//! Replay: open the next run of tasks that have ended.

use duly_core::ports::store::{Controlled, Replay, ReplayTasks};
use duly_core::state::{Event, Status, transition};
use uuid::Uuid;

use super::control::Tasks;
use super::ledger::Ledger;
use super::state::State;
use super::{Scope, Verb, progress};
use crate::postgres::error::Result;
use crate::postgres::row;

impl Verb for ReplayTasks {
    type Answer = Vec<Controlled>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let days: Vec<_> = self.tasks.iter().map(|replay| row::uuid(replay.task)).collect();
        scope.query("/* replay.keep_days */ SELECT duly.keep_days($1)", &[&days]).await?;
        let ids = self.tasks.iter().map(|replay| replay.task);
        let mut tasks = Tasks::lock(scope, &self.tenant, ids).await?;
        let (now, mut ledger) = (scope.now, Ledger::default());
        let mut opened = Vec::new();
        let mut one = |order: &Replay| {
            let run_at = order.run_at.map_or(now, |at| at.max(now)).millis();
            tasks.order(order.task, |state| {
                if state.run > row::encode_count(order.run) {
                    return true;
                }
                let can = transition(state.status, Event::Replay).is_ok();
                if can {
                    open_run(state, run_at, &mut ledger);
                    opened.push(state.id);
                }
                can
            })
        };
        let answers = self.tasks.iter().map(&mut one).collect();
        ledger.close(scope).await?;
        start_afresh(scope, &opened, self.payload.as_deref()).await?;
        Ok(answers)
    }
}

fn open_run(state: &mut State, run_at: i64, ledger: &mut Ledger) {
    match state.status {
        Status::Failed => ledger.revive(state),
        Status::Success => ledger.record_success(state),
        _ => {}
    }
    if state.sequence.is_some_and(|sequence| sequence < 0) {
        ledger.tell(state);
    }
    state.move_on(Event::Replay, run_at);
    state.run += 1;
    (state.charged, state.losses) = (0, 0);
    state.rank = state.range().suspecting(false).rank;
    state.run_at = run_at;
    (state.granted_at, state.finished_at) = (None, None);
    // Without a session no outcome of the run before can be taken for one of this run.
    state.session = None;
    (state.error, state.result) = (None, None);
    ledger.wait(state);
    ledger.write(state.clone());
}

/// What else a new run does not take over.
async fn start_afresh(scope: &Scope<'_>, tasks: &[Uuid], payload: Option<&str>) -> Result<()> {
    if tasks.is_empty() {
        return Ok(());
    }
    progress::forget(scope, tasks).await?;
    if let Some(payload) = payload {
        let update = "/* replay.payload */ UPDATE duly.task SET payload = $2
            WHERE id = ANY($1) AND status = 1";
        scope.execute(update, &[&tasks, &payload]).await?;
    }
    Ok(())
}
