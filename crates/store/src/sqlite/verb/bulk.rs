//! Orders for many tasks, step by step.

use duly_core::ports::store::{BulkStep, Controlled, Order, Reported};
use duly_core::progress::Progress;

use super::report::{standing, write_progress};
use super::{Scope, Verb};
use crate::sqlite::error::Result;
use crate::sqlite::index::grants::Granted;

impl Verb for BulkStep {
    type Answer = Option<Vec<Controlled>>;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Option<Vec<Controlled>>> {
        let lease = Granted { task: self.task, epoch: self.epoch };
        if standing(scope, self.session, lease)? != Reported::Done {
            return Ok(None);
        }
        let answers = match &self.order {
            Order::Cancel(order) => order.apply(scope),
            Order::Retry(order) => order.apply(scope),
            Order::Replay(order) => order.apply(scope),
            Order::Delete(order) => order.apply(scope),
        }?;
        let carried_out = answers.iter().filter(|answer| **answer == Controlled::Done).count();
        let done = self.progress.done + carried_out as u64;
        let progress = Progress { done, ..self.progress.clone() };
        write_progress(scope, self.session, lease, &progress)?;
        Ok(Some(answers))
    }
}
