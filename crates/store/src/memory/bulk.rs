//! How the reference model counts tasks and carries out orders for many.

use async_trait::async_trait;
use duly_core::limits::SCAN_ROWS;
use duly_core::ports::store::{
    Bulk, BulkStep, Controlled, CountTasks, DeleteTasks, Order, Reported, Result, TaskCount,
};
use duly_core::progress::Progress;
use duly_core::time::Timestamp;

use super::MemoryStore;
use super::list::within;
use super::model::Model;
use crate::audited::Audited as _;

#[async_trait]
impl Bulk for MemoryStore {
    async fn count(&self, which: CountTasks) -> Result<TaskCount> {
        Ok(self.model.lock().count(&which))
    }

    async fn delete(&self, order: DeleteTasks) -> Result<Vec<Controlled>> {
        Ok(self.order(|| order.audited(), |model, now| model.delete(&order, now)))
    }

    async fn carry_out(&self, step: BulkStep) -> Result<Option<Vec<Controlled>>> {
        let now = self.clock.now();
        let answers = self.model.lock().carry_out(&step, now);
        self.hint_at(answers.is_some().then_some(now));
        Ok(answers)
    }
}

impl Model {
    fn count(&self, which: &CountTasks) -> TaskCount {
        let CountTasks { tenant, filter, retried, before } = which;
        let newest_first = self.tasks.values().rev();
        let wanted = newest_first
            .filter(|task| task.lane.tenant == *tenant)
            .filter(|task| within(filter, task.id.first_due()))
            .filter(|task| before.is_none_or(|before| task.id < before));
        let (mut count, mut looked, mut last) = (0, 0, None);
        for task in wanted {
            if looked == SCAN_ROWS {
                return TaskCount { count, next_before: last };
            }
            looked += 1;
            let fits = self.fits(task, filter) && !task.lane.queue.is_reserved();
            count += u64::from(fits && (!retried || task.charged > 0));
            last = Some(task.id);
        }
        TaskCount { count, next_before: None }
    }

    /// A task that is gone was deleted before.
    fn delete(&mut self, order: &DeleteTasks, now: Timestamp) -> Vec<Controlled> {
        let early = |ended: Timestamp| order.before.is_none_or(|before| ended < before);
        let mut answers = Vec::new();
        for id in &order.tasks {
            answers.push(match self.get(&order.tenant, *id) {
                Some(task) if task.status.is_terminal() && self.has_open_children(*id) => {
                    Controlled::OpenChildren
                }
                Some(task) if !task.finished_at.is_some_and(early) => {
                    Controlled::Conflict { status: task.status }
                }
                Some(_) => {
                    self.deleted(*id, now);
                    Controlled::Done
                }
                None => Controlled::Done,
            });
        }
        answers
    }

    fn carry_out(&mut self, step: &BulkStep, now: Timestamp) -> Option<Vec<Controlled>> {
        if self.hears(step.session, step.task, step.epoch) != Reported::Done {
            return None;
        }
        let answers = match &step.order {
            Order::Cancel(order) => self.cancel(order, now),
            Order::Retry(order) => self.retry(order, now),
            Order::Replay(order) => self.replay(order, now),
            Order::Delete(order) => self.delete(order, now),
        };
        let carried_out = answers.iter().filter(|answer| **answer == Controlled::Done).count();
        let done = step.progress.done + carried_out as u64;
        self.write_progress(step.task, &Progress { done, ..step.progress.clone() }, now);
        Some(answers)
    }
}
