//! One order for many tasks. It is a task itself, of a type and in a queue of the system's own, so
//! that it outlives a crash, shows how far it is, and ends when it is cancelled.

use std::sync::Arc;
use std::time::Duration;

use duly_core::bulk::{BulkAction, BulkOrder};
use duly_core::filter::Filter;
use duly_core::id::TaskId;
use duly_core::limits::TIMEOUT;
use duly_core::name::{QueueName, TenantName, TypeName};
use duly_core::ports::store::{self, CountTasks, ListTasks, TaskCount};
use duly_core::submit::Draft;
use duly_core::task::Task;

use crate::command::{control, submit};
use crate::engine::Engine;

/// How often a step that the store refused is tried again before a person has to look.
const RETRIES: u32 = 100;
/// Tasks that a trial run names.
const SAMPLE: u32 = 10;

/// What an order would do.
#[derive(Clone, Debug)]
pub struct Preview {
    /// For how many tasks, as far as they were counted.
    pub count: u64,
    /// Whether there may be more.
    pub more: bool,
    /// Some of them.
    pub sample: Vec<TaskId>,
}

impl Preview {
    /// Of an order that names its tasks.
    pub fn of_ids(ids: &[TaskId]) -> Self {
        let sample = ids.iter().copied().take(SAMPLE as usize).collect();
        Self { count: ids.len() as u64, more: false, sample }
    }
}

impl Engine {
    /// Starts to carry out an order; answers as soon as it is kept.
    pub async fn start_bulk(
        &self,
        tenant: &TenantName,
        order: &BulkOrder,
    ) -> Result<Task, submit::Error> {
        let draft = Draft {
            task_type: Some("bulk".to_owned()),
            payload: serde_json::to_string(order).ok(),
            retries: Some(RETRIES.into()),
            timeout_seconds: Some(TIMEOUT.as_secs_f64()),
            ..Draft::default()
        };
        let mut spec = draft.check().expect("an order that was checked makes a sound task");
        (spec.task_type, spec.queue) = (TypeName::bulk(), QueueName::system());
        let mut answers = self.submit(tenant, vec![spec]).await?;
        match answers.pop() {
            Some(Ok(accepted)) => Ok(accepted.task),
            refused => {
                let reason = format!("the order was not kept: {refused:?}");
                Err(submit::Error::Store(Arc::new(store::Error::Unavailable { reason })))
            }
        }
    }

    /// For which tasks an order would be carried out, without doing so.
    pub async fn preview_bulk(
        &self,
        tenant: &TenantName,
        action: BulkAction,
        filter: Filter,
    ) -> store::Result<Preview> {
        let which = CountTasks { tenant: tenant.clone(), filter: filter.clone(), before: None };
        let TaskCount { count, next_before } = self.store().count(which).await?;
        let page = ListTasks { tenant: tenant.clone(), filter, before: None, limit: SAMPLE };
        let now = self.store().now().await?;
        let found = self.store().list(page).await?.tasks;
        let meant = found.iter().filter(|task| action.means(task, now));
        let sample = meant.map(|task| task.id).collect();
        Ok(Preview { count, more: next_before.is_some(), sample })
    }

    /// An order that was given; nothing if the id is that of another task.
    pub async fn bulk(
        &self,
        tenant: &TenantName,
        id: TaskId,
        wait: Option<Duration>,
    ) -> store::Result<Option<Task>> {
        let task = match wait {
            Some(wait) => self.wait(tenant, id, wait).await?,
            None => self.get(tenant, id).await?,
        };
        Ok(task.filter(|task| task.lane.task_type == TypeName::bulk()))
    }

    /// Stops an order: what is done stays done, and nothing more is.
    pub async fn abort_bulk(
        &self,
        tenant: &TenantName,
        id: TaskId,
    ) -> Result<Task, control::Error> {
        self.bulk(tenant, id, None).await?.ok_or(control::Error::NotFound)?;
        self.cancel(tenant, id, "aborted".to_owned()).await
    }
}
