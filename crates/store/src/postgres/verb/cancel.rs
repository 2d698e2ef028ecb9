//! Cancel: end tasks that wait or run.

use duly_core::ports::store::{CancelTasks, Controlled};
use duly_core::state::{Event, Status, transition};
use duly_core::task::Failure;

use super::control::Tasks;
use super::ledger::Ledger;
use super::state::State;
use super::{Scope, Verb};
use crate::postgres::error::Result;

impl Verb for CancelTasks {
    type Answer = Vec<Controlled>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let mut tasks = Tasks::lock(scope, &self.tenant, self.tasks.iter().copied()).await?;
        let error = Failure::new("CANCELLED", self.reason.clone());
        let (now, mut ledger) = (scope.now.millis(), Ledger::default());
        let mut one = |task| tasks.order(task, |state| cancel(state, &error, now, &mut ledger));
        let answers = self.tasks.iter().map(|task| one(*task)).collect();
        ledger.close(scope).await?;
        Ok(answers)
    }
}

fn cancel(state: &mut State, error: &Failure, now: i64, ledger: &mut Ledger) -> bool {
    if state.status == Status::Cancelled {
        return true;
    }
    if transition(state.status, Event::Cancel).is_err() {
        return false;
    }
    match state.status {
        Status::Running => {
            ledger.end_lease(state, false);
            ledger.revoke(state);
            // A raised epoch refuses whatever the holder says from now on.
            state.epoch += 1;
        }
        _ => ledger.stop_waiting(state),
    }
    state.set_error(error);
    state.move_on(Event::Cancel, now);
    ledger.write(state.clone());
    true
}
