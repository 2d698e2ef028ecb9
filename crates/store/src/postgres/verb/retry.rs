//! Retry: make tasks that wait for their next attempt due now.

use duly_core::ports::store::{Controlled, RetryTasks};
use duly_core::state::Status;

use super::control::Tasks;
use super::{Scope, Verb};
use crate::audited::{Audited, Subject};
use crate::postgres::error::Result;
use crate::postgres::task_state::changes::Changes;
use crate::postgres::task_state::state::TaskState;

impl Verb for RetryTasks {
    type Answer = Vec<Controlled>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let mut tasks = Tasks::lock(scope, &self.tenant, self.tasks.iter().copied()).await?;
        let (now, mut changes) = (scope.now.millis(), Changes::default());
        let mut one = |task| tasks.order(task, |state| hurry(state, now, &mut changes));
        let answers = self.tasks.iter().map(|task| one(*task)).collect();
        changes.write(scope).await?;
        Ok(answers)
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

fn hurry(state: &mut TaskState, now: i64, changes: &mut Changes) -> bool {
    let waits = state.status == Status::Pending && state.charged > 0;
    if waits && now < state.run_at {
        changes.stop_waiting(state);
        state.run_at = now;
        changes.waiting(state);
        changes.edited(state);
    }
    waits
}
