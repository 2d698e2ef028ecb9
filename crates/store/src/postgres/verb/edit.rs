//! Edit: change a task that waits.

use duly_core::ports::store::{Controlled, EditTask, TaskChange};
use duly_core::state::Status;
use duly_core::submit::Start;
use duly_core::time::Timestamp;

use super::control::Tasks;
use super::{Scope, Verb};
use crate::audited::{Audited, Subject};
use crate::postgres::error::Result;
use crate::postgres::range::{Range, rank};
use crate::postgres::row;
use crate::postgres::task_state::changes::Changes;
use crate::postgres::task_state::state::TaskState;
use crate::postgres::task_state::{blocked, fields};

impl Verb for EditTask {
    type Answer = Controlled;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Controlled> {
        let mut tasks = Tasks::lock(scope, &self.tenant, std::iter::once(self.task)).await?;
        let mut changes = Changes::default();
        let now = scope.now;
        let mut blocked = None;
        let answer = tasks.order(self.task, |state| {
            let waits = matches!(state.status, Status::Pending | Status::Blocked);
            if waits {
                relocate(state, &self.change, now, &mut changes);
                changes.edited(state);
            }
            blocked = (state.status == Status::Blocked).then(|| state.clone());
            waits
        });
        changes.write(scope).await?;
        if let (Some(state), Some(start)) = (blocked, self.change.start) {
            let delay = if let Start::After(delay) = start { Some(delay) } else { None };
            blocked::set_delay(scope, &state, delay.map(row::encode_delay)).await?;
        }
        if answer == Controlled::Done {
            fields::edit(scope, self).await?;
        }
        Ok(answer)
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

/// Lets a task wait where the change wants it to.
fn relocate(state: &mut TaskState, change: &TaskChange, now: Timestamp, changes: &mut Changes) {
    let was = state.clone();
    if let Some(priority) = change.priority {
        // A quarantined task stays so.
        let range = Range { rank: rank(priority), ..state.range() };
        state.rank = range.with_quarantine(was.range().is_quarantined()).rank;
    }
    state.run_at = change.start.map_or(state.run_at, |start| start.resolve(now).millis());
    if (state.rank, state.run_at) == (was.rank, was.run_at) {
        return;
    }
    if state.status == Status::Blocked {
        changes.stays_blocked(state);
    } else {
        changes.stop_waiting(&was);
        changes.waiting(state);
    }
}
