//! Carries out one order for many tasks, page by page. Each page is one commit together with the
//! note of how far it is, so that a crash repeats and leaves out nothing.

use std::sync::Arc;
use std::time::Duration;

use duly_core::bulk::{BulkAction, BulkNote, BulkOrder};
use duly_core::filter::Filter;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::Lease;
use duly_core::limits::{BULK_STEP, RUN_AHEAD};
use duly_core::name::TenantName;
use duly_core::ports::store::{
    self, BulkStep, CancelTasks, Controlled, CountTasks, DeleteTasks, ListTasks, Order, Replay,
    ReplayTasks, RetryTasks,
};
use duly_core::ports::work_source::{TakenBack, Why};
use duly_core::progress::Progress;
use duly_core::state::Status;
use duly_core::task::Task;

use crate::engine::Engine;

/// How far tasks are counted beforehand, in calls of the store; of more the total is not told.
const COUNTS: usize = 20;

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
    let filter = order.action.filter(&order.filter, order.ordered_at);
    let filter = filter.map_err(|bad| senseless(&bad))?;
    let tenant = &lease.lane.tenant;
    let task = engine.get(tenant, lease.task).await?.ok_or(Stopped::Lost)?;
    let last = task.progress.map(|reported| reported.progress).unwrap_or_default();
    let note = last.checkpoint.as_deref().map(serde_json::from_str).transpose();
    let mut run = Run {
        engine,
        session,
        lease,
        tenant,
        filter,
        done: last.done,
        total: last.total,
        note: note.map_err(|bad| senseless(&bad))?.unwrap_or_default(),
        order,
    };
    if run.total.is_none() {
        run.total = run.count().await?;
    }
    while let Some(page) = run.next().await? {
        run.step(page).await?;
    }
    let result = serde_json::json!({"done": run.done, "skipped": run.note.skipped});
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
    done: u64,
    total: Option<u64>,
    note: BulkNote,
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
        let (tenant, filter) = (self.tenant.clone(), self.filter.clone());
        let mut which = CountTasks { tenant, filter, before: None };
        let mut total = 0;
        for _ in 0..COUNTS {
            let counted = self.engine.store().count(which.clone()).await?;
            total += counted.count;
            which.before = counted.next_before;
            if which.before.is_none() {
                return Ok(Some(total));
            }
        }
        Ok(None)
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

    async fn next_named(&self, ids: &[TaskId]) -> Result<Page, store::Error> {
        let left = ids.get(self.note.looked..).unwrap_or_default();
        let some = &left[..left.len().min(BULK_STEP as usize)];
        let mut tasks = Vec::with_capacity(some.len());
        for id in some {
            tasks.extend(self.engine.get(self.tenant, *id).await?);
        }
        let meant = self.meant(tasks);
        let skipped = self.note.skipped + (some.len() - meant.len()) as u64;
        let looked = self.note.looked + some.len();
        let next = BulkNote { before: None, looked, finished: looked >= ids.len(), skipped };
        Ok(Page { tasks: meant, next })
    }

    async fn next_found(&self) -> Result<Page, store::Error> {
        let page = ListTasks {
            tenant: self.tenant.clone(),
            filter: self.filter.clone(),
            before: self.note.before,
            limit: BULK_STEP,
        };
        let found = self.engine.store().list(page).await?;
        let (before, finished) = (found.next_before, found.next_before.is_none());
        let next = BulkNote { before, finished, ..self.note.clone() };
        Ok(Page { tasks: self.meant(found.tasks), next })
    }

    fn meant(&self, tasks: Vec<Task>) -> Vec<Task> {
        let (action, at) = (self.order.action, self.order.ordered_at);
        tasks.into_iter().filter(|task| action.means(task, at)).collect()
    }

    /// Carries the order out for a page.
    async fn step(&mut self, page: Page) -> Result<(), Stopped> {
        let Page { tasks, next } = page;
        let checkpoint = serde_json::to_string(&next).expect("a note can always be written");
        let progress = Progress {
            checkpoint: Some(Arc::from(checkpoint)),
            ..Progress::new(self.done, self.total)
        };
        let step = BulkStep {
            session: self.session,
            task: self.lease.task,
            epoch: self.lease.epoch,
            order: self.order_for(&tasks),
            progress,
        };
        let answers = self.engine.store().carry_out(step).await?.ok_or(Stopped::Lost)?;
        let done = answers.iter().filter(|answer| **answer == Controlled::Done).count();
        self.done += done as u64;
        self.note = BulkNote { skipped: next.skipped + (answers.len() - done) as u64, ..next };
        self.tell(&tasks);
        Ok(())
    }

    fn order_for(&self, tasks: &[Task]) -> Order {
        let tenant = self.tenant.clone();
        let ids = tasks.iter().map(|task| task.id);
        match self.order.action {
            BulkAction::Cancel => {
                let (tasks, reason) = (ids.collect(), self.order.reason.clone());
                Order::Cancel(CancelTasks { tenant, tasks, reason })
            }
            BulkAction::Retry => Order::Retry(RetryTasks { tenant, tasks: ids.collect() }),
            BulkAction::Delete => Order::Delete(DeleteTasks { tenant, tasks: ids.collect() }),
            BulkAction::Replay => {
                let replay = |(task, number): (&Task, u64)| Replay {
                    task: task.id,
                    run: task.run,
                    run_at: self.order.per_second.map(|rate| {
                        let after = Duration::try_from_secs_f64(number as f64 / rate);
                        self.order.ordered_at.plus(after.unwrap_or(RUN_AHEAD).min(RUN_AHEAD))
                    }),
                };
                let tasks = tasks.iter().zip(self.done..).map(replay).collect();
                Order::Replay(ReplayTasks { tenant, tasks, payload: None })
            }
        }
    }

    /// Wakes those who wait for one of the tasks, and tells workers that they run one in vain.
    fn tell(&self, tasks: &[Task]) {
        if self.order.action != BulkAction::Cancel {
            return;
        }
        self.engine.outcomes().announce(tasks.iter().map(|task| task.id));
        for task in tasks.iter().filter(|task| task.status == Status::Running) {
            if let Some(session) = task.session {
                let lease = TakenBack { task: task.id, epoch: task.epoch, why: Why::Cancelled };
                self.engine.remotes().take_back(session, lease);
            }
        }
    }
}
