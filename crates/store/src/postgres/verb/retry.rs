//! Retry: make tasks that wait for their next attempt due now.

use duly_core::ports::store::{Controlled, RetryTasks};
use duly_core::state::Status;

use super::control::Tasks;
use super::ledger::Ledger;
use super::state::State;
use super::{Scope, Verb};
use crate::postgres::error::Result;

impl Verb for RetryTasks {
    type Answer = Vec<Controlled>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let mut tasks = Tasks::lock(scope, &self.tenant, self.tasks.iter().copied()).await?;
        let (now, mut ledger) = (scope.now.millis(), Ledger::default());
        let mut one = |task| tasks.order(task, |state| hurry(state, now, &mut ledger));
        let answers = self.tasks.iter().map(|task| one(*task)).collect();
        ledger.close(scope).await?;
        Ok(answers)
    }
}

fn hurry(state: &mut State, now: i64, ledger: &mut Ledger) -> bool {
    let waits = state.status == Status::Pending && state.charged > 0;
    if waits && now < state.run_at {
        ledger.stop_waiting(state);
        state.run_at = now;
        ledger.wait(state);
        ledger.write(state.clone());
    }
    waits
}
