//! Runs one bulk action, page by page. Each page and its checkpoint are one commit, so that a
//! crash repeats no page and skips none.

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
    self, BulkStep, CancelTasks, Controlled, DeleteTasks, ListDead, ListTasks, Order, Replay,
    ReplayTasks, RetryTasks,
};
use duly_core::ports::work_source::{TakenBack, Why};
use duly_core::progress::Progress;
use duly_core::state::Status;
use duly_core::task::Task;
use duly_core::time::Timestamp;
use tokio::time::Instant;

use super::Stopped;
use crate::engine::Engine;

/// How often a search that finds no tasks stores its checkpoint.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);

/// Runs a bulk action from its last checkpoint. Returns its result as JSON.
pub(super) async fn run(
    engine: &Engine,
    session: SessionId,
    lease: &Lease,
) -> Result<Arc<str>, Stopped> {
    let invalid = |bad: &dyn std::fmt::Display| Stopped::Invalid(bad.to_string());
    let order: BulkOrder = serde_json::from_str(&lease.payload).map_err(|bad| invalid(&bad))?;
    let tenant = &lease.lane.tenant;
    let task = engine.get(tenant, lease.task).await?.ok_or(Stopped::Lost)?;
    let given_at = task.created_at;
    let filter = order.parse_filter(given_at).map_err(|bad| invalid(&bad))?;
    let begun = task.progress.is_some();
    let last = task.progress.map(|reported| reported.progress).unwrap_or_default();
    let note = last.checkpoint.as_deref().map(serde_json::from_str).transpose();
    let mut run = BulkRun {
        engine,
        session,
        lease,
        tenant,
        filter,
        given_at,
        done: last.done,
        total: last.total,
        note: note.map_err(|bad| invalid(&bad))?.unwrap_or_default(),
        order,
        noted_at: Instant::now(),
    };
    if !begun {
        run.total = run.count().await?;
    }
    while let Some(page) = run.next().await? {
        let start = Instant::now();
        run.step(page).await?;
        // Other callers have the store half of the time.
        tokio::time::sleep(start.elapsed()).await;
    }
    let skipped = run.note.tried.saturating_sub(run.done);
    let result = serde_json::json!({"done": run.done, "skipped": skipped});
    Ok(Arc::from(result.to_string()))
}

/// A bulk action that runs.
struct BulkRun<'a> {
    engine: &'a Engine,
    session: SessionId,
    lease: &'a Lease,
    tenant: &'a TenantName,
    order: BulkOrder,
    filter: Filter,
    given_at: Timestamp,
    done: u64,
    total: Option<u64>,
    /// The checkpoint: what is done so far.
    note: BulkNote,
    /// When the checkpoint was last stored.
    noted_at: Instant,
}

/// Tasks to which the action applies, and the checkpoint after them.
struct Page {
    tasks: Vec<Task>,
    next: BulkNote,
}

impl BulkRun<'_> {
    /// How many tasks the action applies to, unless they are too many to count.
    async fn count(&self) -> Result<Option<u64>, store::Error> {
        if let Some(ids) = &self.order.ids {
            return Ok(Some(ids.len() as u64));
        }
        let mut filter = self.filter.clone();
        if self.order.dead_letters {
            // Tasks are counted by the time at which they were due, not at which they failed.
            if filter.since.is_some() || filter.until.is_some() {
                return Ok(None);
            }
            filter.statuses = [Status::Failed].into();
        }
        let pages = BULK_COUNT / u64::from(SCAN_ROWS);
        let counted = self.engine.count_affected(self.tenant, self.order.action, &filter, pages);
        let (total, more) = counted.await?;
        Ok((!more).then_some(total))
    }

    /// The next tasks; `None` at the end.
    async fn next(&self) -> Result<Option<Page>, store::Error> {
        if self.note.finished {
            return Ok(None);
        }
        let page = match &self.order.ids {
            Some(ids) => self.next_named(ids).await,
            None if self.order.dead_letters => self.next_dead().await,
            None => self.next_found().await,
        };
        page.map(Some)
    }

    /// How many tasks one commit handles.
    fn page_size(&self) -> u32 {
        if self.order.action == BulkAction::Delete { BULK_DELETE_STEP } else { BULK_STEP }
    }

    async fn next_named(&self, ids: &[TaskId]) -> Result<Page, store::Error> {
        let left = ids.get(self.note.looked..).unwrap_or_default();
        let (mut tasks, mut bytes, mut looked) = (Vec::new(), 0, self.note.looked);
        for id in left.iter().take(self.page_size() as usize) {
            looked += 1;
            match self.engine.get(self.tenant, *id).await {
                Ok(task) => {
                    bytes += task.as_ref().map_or(0, Task::bytes);
                    tasks.extend(task);
                }
                Err(error) if error.is_retryable() => return Err(error),
                // A search skips unreadable tasks too.
                Err(error) => tracing::error!(%error, task.id = %id, "a task cannot be read"),
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
            limit: self.page_size(),
        };
        let found = self.engine.store().list(page).await?;
        let next = BulkNote { before: found.next_before, ..self.note.clone() };
        Ok(self.page(found.tasks, next, found.next_before.is_none()))
    }

    async fn next_dead(&self) -> Result<Page, store::Error> {
        let page = ListDead {
            tenant: self.tenant.clone(),
            filter: self.filter.clone(),
            before: self.note.dead_before,
            limit: self.page_size(),
        };
        let found = self.engine.store().dead_letters(page).await?;
        let next = BulkNote { dead_before: found.next_before, ..self.note.clone() };
        Ok(self.page(found.tasks, next, found.next_before.is_none()))
    }

    /// Those of the tasks found to which the action applies, and the checkpoint after them.
    fn page(&self, found: Vec<Task>, next: BulkNote, finished: bool) -> Page {
        let tasks = self.meant(found);
        let tried = next.tried + tasks.len() as u64;
        Page { tasks, next: BulkNote { finished, tried, ..next } }
    }

    fn meant(&self, tasks: Vec<Task>) -> Vec<Task> {
        tasks.into_iter().filter(|task| self.order.action.means(task, self.given_at)).collect()
    }

    /// Applies the action to a page.
    async fn step(&mut self, page: Page) -> Result<(), Stopped> {
        let Page { tasks, mut next } = page;
        if tasks.is_empty() && (next.finished || self.noted_at.elapsed() < CHECKPOINT_INTERVAL) {
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
        (self.note, self.noted_at) = (next, Instant::now());
        let done = answers.iter().filter(|answer| **answer == Controlled::Done).count();
        self.done += done as u64;
        self.notify_cancelled(&tasks).await?;
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

    /// Wakes callers that wait for a cancelled task, and tells workers that their lease is gone.
    /// Reads each task again, since it may have been granted after it was found.
    async fn notify_cancelled(&self, tasks: &[Task]) -> Result<(), store::Error> {
        if self.order.action != BulkAction::Cancel {
            return Ok(());
        }
        self.engine.task_waiters().notify_changed(tasks.iter().map(|task| task.id));
        self.engine.cascade_now();
        for task in tasks {
            let Some(task) = self.engine.get(self.tenant, task.id).await? else { continue };
            if let (Some(session), Some(epoch)) = (task.session, task.epoch.checked_sub(1)) {
                let lease = TakenBack { task: task.id, epoch, why: Why::Cancelled };
                self.engine.sessions().take_back(session, lease);
            }
        }
        Ok(())
    }
}
