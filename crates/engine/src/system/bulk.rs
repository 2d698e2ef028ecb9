//! Carries out one order for many tasks, page by page. Each page is one commit together with the
//! note of how far it is, so that a crash repeats and leaves out nothing.

use std::sync::Arc;
use std::time::Duration;

use duly_core::bulk::{BulkAction, BulkNote, BulkOrder, spacing};
use duly_core::filter::Filter;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::Lease;
use duly_core::limits::{
    BULK_COUNT, BULK_DELETE_STEP, BULK_STEP, PAGE_BYTES, RUN_AHEAD, SCAN_ROWS,
};
use duly_core::name::TenantName;
use duly_core::ports::store::{
    self, BulkStep, CancelTasks, Controlled, DeleteTasks, ListTasks, Order, Replay, ReplayTasks,
    RetryTasks,
};
use duly_core::ports::work_source::{TakenBack, Why};
use duly_core::progress::Progress;
use duly_core::task::Task;
use duly_core::time::Timestamp;
use tokio::time::Instant;

use crate::engine::Engine;

/// How long a search goes on without a word about how far it is.
const SILENCE: Duration = Duration::from_secs(1);

/// Why an order was not carried out to its end.
#[derive(Debug)]
pub(super) enum Stopped {
    /// Somebody aborted it, or another worker has it.
    Lost,
    /// It cannot be read.
    Senseless(String),
    /// The store did not answer.
    Store(store::Error),
}

impl From<store::Error> for Stopped {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

/// Carries an order out from where its last attempt ended; answers its result as JSON.
pub(super) async fn carry_out(
    engine: &Engine,
    session: SessionId,
    lease: &Lease,
) -> Result<Arc<str>, Stopped> {
    let senseless = |bad: &dyn std::fmt::Display| Stopped::Senseless(bad.to_string());
    let order: BulkOrder = serde_json::from_str(&lease.payload).map_err(|bad| senseless(&bad))?;
    let tenant = &lease.lane.tenant;
    let task = engine.get(tenant, lease.task).await?.ok_or(Stopped::Lost)?;
    let given_at = task.created_at;
    let filter = order.action.filter(&order.filter, given_at).map_err(|bad| senseless(&bad))?;
    let begun = task.progress.is_some();
    let last = task.progress.map(|reported| reported.progress).unwrap_or_default();
    let note = last.checkpoint.as_deref().map(serde_json::from_str).transpose();
    let mut run = Run {
        engine,
        session,
        lease,
        tenant,
        filter,
        given_at,
        done: last.done,
        total: last.total,
        note: note.map_err(|bad| senseless(&bad))?.unwrap_or_default(),
        order,
        noted: Instant::now(),
    };
    if !begun {
        run.total = run.count().await?;
    }
    while let Some(page) = run.next().await? {
        let start = Instant::now();
        run.step(page).await?;
        // Half of the time is for others.
        tokio::time::sleep(start.elapsed()).await;
    }
    let skipped = run.note.tried.saturating_sub(run.done);
    let result = serde_json::json!({"done": run.done, "skipped": skipped});
    Ok(Arc::from(result.to_string()))
}

/// An order that is being carried out.
struct Run<'a> {
    engine: &'a Engine,
    session: SessionId,
    lease: &'a Lease,
    tenant: &'a TenantName,
    order: BulkOrder,
    filter: Filter,
    given_at: Timestamp,
    done: u64,
    total: Option<u64>,
    note: BulkNote,
    /// When the store was last told how far it is.
    noted: Instant,
}

/// Tasks that the order means, and where to go on after them.
struct Page {
    tasks: Vec<Task>,
    next: BulkNote,
}

impl Run<'_> {
    /// How many tasks the order is for, unless they are too many to count.
    async fn count(&self) -> Result<Option<u64>, store::Error> {
        if let Some(ids) = &self.order.ids {
            return Ok(Some(ids.len() as u64));
        }
        let looks = BULK_COUNT / u64::from(SCAN_ROWS);
        let counted = self.engine.count_meant(self.tenant, self.order.action, &self.filter, looks);
        let (total, more) = counted.await?;
        Ok((!more).then_some(total))
    }

    /// The next tasks, until there are none.
    async fn next(&self) -> Result<Option<Page>, store::Error> {
        if self.note.finished {
            return Ok(None);
        }
        let page = match &self.order.ids {
            Some(ids) => self.next_named(ids).await,
            None => self.next_found().await,
        };
        page.map(Some)
    }

    /// How many tasks are dealt with at once.
    fn pace(&self) -> u32 {
        if self.order.action == BulkAction::Delete { BULK_DELETE_STEP } else { BULK_STEP }
    }

    async fn next_named(&self, ids: &[TaskId]) -> Result<Page, store::Error> {
        let left = ids.get(self.note.looked..).unwrap_or_default();
        let (mut tasks, mut bytes, mut looked) = (Vec::new(), 0, self.note.looked);
        for id in left.iter().take(self.pace() as usize) {
            looked += 1;
            match self.engine.get(self.tenant, *id).await {
                Ok(task) => {
                    bytes += task.as_ref().map_or(0, Task::bytes);
                    tasks.extend(task);
                }
                Err(error) if error.is_retryable() => return Err(error),
                // One that cannot be read is left alone, as a search does.
                Err(error) => tracing::error!(%error, task.id = %id, "a task is passed over"),
            }
            if bytes > PAGE_BYTES {
                break;
            }
        }
        let next = BulkNote {
            looked,
            finished: looked >= ids.len(),
            tried: self.note.tried + (looked - self.note.looked) as u64,
            ..self.note.clone()
        };
        Ok(Page { tasks: self.meant(tasks), next })
    }

    async fn next_found(&self) -> Result<Page, store::Error> {
        let page = ListTasks {
            tenant: self.tenant.clone(),
            filter: self.filter.clone(),
            before: self.note.before,
            limit: self.pace(),
        };
        let found = self.engine.store().list(page).await?;
        let tasks = self.meant(found.tasks);
        let next = BulkNote {
            before: found.next_before,
            finished: found.next_before.is_none(),
            tried: self.note.tried + tasks.len() as u64,
            ..self.note.clone()
        };
        Ok(Page { tasks, next })
    }

    fn meant(&self, tasks: Vec<Task>) -> Vec<Task> {
        tasks.into_iter().filter(|task| self.order.action.means(task, self.given_at)).collect()
    }

    /// Carries the order out for a page.
    async fn step(&mut self, page: Page) -> Result<(), Stopped> {
        let Page { tasks, mut next } = page;
        if tasks.is_empty() && (next.finished || self.noted.elapsed() < SILENCE) {
            self.note = next;
            return Ok(());
        }
        let now = self.engine.store().now().await?;
        let order = self.order_for(&tasks, &mut next, now);
        let checkpoint = serde_json::to_string(&next).expect("a note can always be written");
        let progress = Progress {
            checkpoint: Some(Arc::from(checkpoint)),
            ..Progress::new(self.done, self.total)
        };
        let step = BulkStep {
            session: self.session,
            task: self.lease.task,
            epoch: self.lease.epoch,
            order,
            progress,
        };
        let answers = self.engine.store().carry_out(step).await?.ok_or(Stopped::Lost)?;
        (self.note, self.noted) = (next, Instant::now());
        let done = answers.iter().filter(|answer| **answer == Controlled::Done).count();
        self.done += done as u64;
        self.tell(&tasks).await?;
        Ok(())
    }

    fn order_for(&self, tasks: &[Task], next: &mut BulkNote, now: Timestamp) -> Order {
        let tenant = self.tenant.clone();
        let ids = tasks.iter().map(|task| task.id);
        match self.order.action {
            BulkAction::Cancel => {
                let (tasks, reason) = (ids.collect(), self.order.reason.clone());
                Order::Cancel(CancelTasks { tenant, tasks, reason })
            }
            BulkAction::Retry => Order::Retry(RetryTasks { tenant, tasks: ids.collect() }),
            BulkAction::Delete => {
                let before = Some(self.given_at.plus(Duration::from_millis(1)));
                Order::Delete(DeleteTasks { tenant, tasks: ids.collect(), before })
            }
            BulkAction::Replay => {
                let spacing = self.order.per_second.map(spacing);
                let mut due = next.due.map_or(now, |due| due.max(now));
                let replay = |task: &Task| {
                    let run_at = spacing.map(|_| due);
                    due = due.plus(spacing.unwrap_or_default()).min(now.plus(RUN_AHEAD));
                    Replay { task: task.id, run: task.run, run_at }
                };
                let tasks = tasks.iter().map(replay).collect();
                next.due = spacing.map(|_| due);
                Order::Replay(ReplayTasks { tenant, tasks, payload: None })
            }
        }
    }

    /// Wakes those who wait for a cancelled task, and tells workers that they run it in vain. A
    /// task may have been granted since it was found, so it is looked at again.
    async fn tell(&self, tasks: &[Task]) -> Result<(), store::Error> {
        if self.order.action != BulkAction::Cancel {
            return Ok(());
        }
        self.engine.outcomes().announce(tasks.iter().map(|task| task.id));
        for task in tasks {
            let Some(task) = self.engine.get(self.tenant, task.id).await? else { continue };
            if let (Some(session), Some(epoch)) = (task.session, task.epoch.checked_sub(1)) {
                let lease = TakenBack { task: task.id, epoch, why: Why::Cancelled };
                self.engine.remotes().take_back(session, lease);
            }
        }
        Ok(())
    }
}
