//! Cancel: end tasks that wait or run.

use duly_core::ports::store::{CancelTasks, Controlled};
use duly_core::state::{Event, Status, transition};
use duly_core::task::Failure;

use super::control::Tasks;
use super::{Scope, Verb};
use crate::audited::{Audited, Subject};
use crate::postgres::error::Result;
use crate::postgres::task_state::changes::Changes;
use crate::postgres::task_state::state::TaskState;

impl Verb for CancelTasks {
    type Answer = Vec<Controlled>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Vec<Controlled>> {
        let mut tasks = Tasks::lock(scope, &self.tenant, self.tasks.iter().copied()).await?;
        let error = Failure::new("CANCELLED", self.reason.clone());
        let (now, mut changes) = (scope.now.millis(), Changes::default());
        let mut one = |task| tasks.order(task, |state| cancel(state, &error, now, &mut changes));
        let answers = self.tasks.iter().map(|task| one(*task)).collect();
        changes.write(scope).await?;
        Ok(answers)
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

pub(super) fn cancel(
    state: &mut TaskState,
    error: &Failure,
    now: i64,
    changes: &mut Changes,
) -> bool {
    if state.status == Status::Cancelled {
        return true;
    }
    if transition(state.status, Event::Cancel).is_err() {
        return false;
    }
    match state.status {
        Status::Running => {
            changes.end_lease(state, false);
            changes.revoke(state);
            // With another epoch, everything that the holder reports from now on is refused.
            state.epoch += 1;
        }
        _ => changes.stop_waiting(state),
    }
    state.set_error(error);
    state.transition(Event::Cancel, now);
    changes.ended(state, None);
    true
}
