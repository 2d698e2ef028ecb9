//! Edit: change a task that waits.

use duly_core::ports::store::{Controlled, EditTask, TaskChange};
use duly_core::state::Status;
use duly_core::time::Timestamp;

use super::control::Tasks;
use super::ledger::Ledger;
use super::state::State;
use super::{Scope, Verb};
use crate::postgres::error::Result;
use crate::postgres::range::{Range, rank};
use crate::postgres::row;

impl Verb for EditTask {
    type Answer = Controlled;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Controlled> {
        let mut tasks = Tasks::lock(scope, &self.tenant, std::iter::once(self.task)).await?;
        let mut ledger = Ledger::default();
        let now = scope.now;
        let answer = tasks.order(self.task, |state| {
            let waits = state.status == Status::Pending;
            if waits {
                relocate(state, &self.change, now, &mut ledger);
            }
            waits
        });
        ledger.close(scope).await?;
        if answer == Controlled::Done {
            change(scope, self).await?;
        }
        Ok(answer)
    }
}

/// Lets a task wait where the change wants it to.
fn relocate(state: &mut State, change: &TaskChange, now: Timestamp, ledger: &mut Ledger) {
    let was = state.clone();
    if let Some(priority) = change.priority {
        // A suspect stays one.
        let range = Range { rank: rank(priority), ..state.range() };
        state.rank = range.suspecting(was.range().is_suspect()).rank;
    }
    state.run_at = change.start.map_or(state.run_at, |start| start.resolve(now).millis());
    if (state.rank, state.run_at) != (was.rank, was.run_at) {
        ledger.stop_waiting(&was);
        ledger.wait(state);
        ledger.write(state.clone());
    }
}

/// Changes the rest; the row is locked.
async fn change(scope: &Scope<'_>, order: &EditTask) -> Result<()> {
    let change = &order.change;
    let update = "/* edit */ UPDATE duly.task SET retries = coalesce($2, retries),
            timeout_ms = coalesce($3, timeout_ms), payload = coalesce($4, payload),
            labels = CASE WHEN $5 THEN $6 ELSE labels END
        WHERE id = $1 AND status = 1";
    let labels = change.labels.as_ref().and_then(row::encode_labels);
    scope
        .execute(
            update,
            &[
                &row::uuid(order.task),
                &change.retries.map(row::encode_count),
                &row::encode_duration(change.timeout),
                &change.payload.as_deref(),
                &change.labels.is_some(),
                &labels,
            ],
        )
        .await?;
    Ok(())
}
