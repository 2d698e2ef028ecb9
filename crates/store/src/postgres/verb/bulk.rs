//! Orders for many tasks, step by step: an order and how far it has come are one commit.

use duly_core::id::TaskId;
use duly_core::ports::store::{BulkStep, Controlled, Order};
use duly_core::progress::Progress;
use uuid::Uuid;

use super::report::Standing;
use super::{Scope, Verb, progress};
use crate::postgres::error::Result;
use crate::postgres::row;

impl Verb for BulkStep {
    type Answer = Option<Vec<Controlled>>;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<Option<Vec<Controlled>>> {
        let (task, session) = (row::uuid(self.task), row::session_uuid(self.session));
        // All at once, so that they are locked in the order of their ids.
        let mut tasks = named(&self.order);
        tasks.push(task);
        let standing = Standing::of(scope, session, tasks).await?;
        let holds = |it: &Standing| !it.foreign && it.holds(self.epoch);
        if !standing.get(&task).is_some_and(holds) {
            return Ok(None);
        }
        let answers = match &self.order {
            Order::Cancel(order) => order.apply(scope).await,
            Order::Retry(order) => order.apply(scope).await,
            Order::Replay(order) => order.apply(scope).await,
            Order::Delete(order) => order.apply(scope).await,
        }?;
        let carried_out = answers.iter().filter(|answer| **answer == Controlled::Done).count();
        let done = self.progress.done + carried_out as u64;
        let news = Progress { done, ..self.progress.clone() };
        progress::keep(scope, vec![(task, &news)]).await?;
        Ok(Some(answers))
    }
}

/// The tasks that an order is about.
fn named(order: &Order) -> Vec<Uuid> {
    let ids = |tasks: &[TaskId]| tasks.iter().map(|task| row::uuid(*task)).collect();
    match order {
        Order::Cancel(order) => ids(&order.tasks),
        Order::Retry(order) => ids(&order.tasks),
        Order::Replay(order) => order.tasks.iter().map(|it| row::uuid(it.task)).collect(),
        Order::Delete(order) => ids(&order.tasks),
    }
}
