//! Bulk actions. A bulk action is a system task: it survives a crash, shows its progress, and
//! ends when it is cancelled.

use std::time::Duration;

use duly_core::bulk::{BulkAction, BulkOrder};
use duly_core::filter::Filter;
use duly_core::id::TaskId;
use duly_core::limits::TIMEOUT;
use duly_core::name::{QueueName, TenantName, TypeName};
use duly_core::ports::store::{self, CountTasks, ListTasks};
use duly_core::submit::{Draft, FieldError};
use duly_core::task::Task;

use crate::command::submit::Accepted;
use crate::command::{control, submit};
use crate::engine::Engine;

/// How often a bulk action that failed is tried again.
const RETRIES: u32 = 100;
/// Tasks that a preview names.
const SAMPLE: u32 = 10;
/// Pages that a preview counts.
const PREVIEW_PAGES: u64 = 10;

/// What a bulk action would do.
#[derive(Clone, Debug)]
pub struct Preview {
    /// How many tasks it applies to, as far as they were counted.
    pub count: u64,
    /// Whether there may be more.
    pub more: bool,
    /// Some of them.
    pub sample: Vec<TaskId>,
}

/// Why a bulk action was not started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A field is invalid, such as the idempotency key.
    #[error("some fields are not valid")]
    Invalid(Vec<FieldError>),
    /// Its task was refused.
    #[error(transparent)]
    Refused(#[from] submit::Refused),
    /// Its task was not stored; a retry may succeed.
    #[error(transparent)]
    Submit(#[from] submit::Error),
}

impl Engine {
    /// Starts a bulk action; returns as soon as its task is stored. The same idempotency key leads
    /// to the same bulk action.
    pub async fn start_bulk(
        &self,
        tenant: &TenantName,
        order: &BulkOrder,
        idempotency_key: Option<String>,
    ) -> Result<Accepted, Error> {
        let draft = Draft {
            task_type: Some("bulk".to_owned()),
            payload: serde_json::to_string(order).ok(),
            retries: Some(RETRIES.into()),
            timeout_seconds: Some(TIMEOUT.as_secs_f64()),
            idempotency_key,
            ..Draft::default()
        };
        let mut spec = draft.check().map_err(Error::Invalid)?;
        (spec.task_type, spec.queue) = (TypeName::bulk(), QueueName::system());
        Ok(self.submit_system(tenant, spec).await??)
    }

    /// What a bulk action would do.
    pub async fn preview_bulk(
        &self,
        tenant: &TenantName,
        order: &BulkOrder,
        filter: Filter,
    ) -> store::Result<Preview> {
        let (action, now) = (order.action, self.store().now().await?);
        if let Some(ids) = &order.ids {
            let mut meant = Vec::new();
            for id in ids {
                let task = self.get(tenant, *id).await?;
                meant.extend(task.filter(|task| action.means(task, now)).map(|task| task.id));
            }
            let count = meant.len() as u64;
            meant.truncate(SAMPLE as usize);
            return Ok(Preview { count, more: false, sample: meant });
        }
        let (count, more) = self.count_affected(tenant, action, &filter, PREVIEW_PAGES).await?;
        let page = ListTasks { tenant: tenant.clone(), filter, before: None, limit: SAMPLE };
        let found = self.store().list(page).await?.tasks;
        let meant = found.iter().filter(|task| action.means(task, now));
        let sample = meant.map(|task| task.id).collect();
        Ok(Preview { count, more, sample })
    }

    /// How many tasks a bulk action applies to, and whether there may be more than these pages
    /// hold. One count at a time, to leave the store's readers to other callers.
    pub(crate) async fn count_affected(
        &self,
        tenant: &TenantName,
        action: BulkAction,
        filter: &Filter,
        pages: u64,
    ) -> store::Result<(u64, bool)> {
        let _turn = self.counting().acquire().await;
        let retried = action == BulkAction::Retry;
        let (tenant, filter) = (tenant.clone(), filter.clone());
        let mut which = CountTasks { tenant, filter, retried, before: None };
        let mut total = 0;
        for _ in 0..pages {
            let counted = self.store().count(which.clone()).await?;
            total += counted.count;
            which.before = counted.next_before;
            if which.before.is_none() {
                return Ok((total, false));
            }
        }
        Ok((total, true))
    }

    /// A bulk action; `None` if the id is that of another task.
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

    /// Stops a bulk action. Changes that it has made stay.
    pub async fn abort_bulk(
        &self,
        tenant: &TenantName,
        id: TaskId,
    ) -> Result<Task, control::Error> {
        self.bulk(tenant, id, None).await?.ok_or(control::Error::NotFound)?;
        self.cancel(tenant, id, "aborted".to_owned()).await
    }
}
