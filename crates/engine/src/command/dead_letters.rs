//! List, replay and delete dead letters.

use std::time::Duration;

use duly_core::bulk::spacing;
use duly_core::filter::Filter;
use duly_core::id::TaskId;
use duly_core::limits::{DEAD_LETTERS, RUN_AHEAD, STORE_BATCH};
use duly_core::name::TenantName;
use duly_core::ports::store::{
    self, Controlled, DeadGroups, DeadList, DeleteTasks, GroupDead, ListDead, Replay, ReplayTasks,
};
use duly_core::task::{Attempt, Task};
use duly_core::time::Timestamp;

use crate::engine::Engine;

/// The result of an action on many dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bulk {
    /// How many it was applied to.
    pub count: usize,
    /// Whether some may be left: one request has a limit.
    pub more: bool,
}

impl Engine {
    /// The failed and lost attempts of a task, oldest first.
    pub async fn attempts(
        &self,
        tenant: &TenantName,
        id: TaskId,
    ) -> store::Result<Option<Vec<Attempt>>> {
        self.store().attempts(tenant, id).await
    }

    /// One page of dead letters, latest failure first.
    pub async fn dead_letters(&self, page: ListDead) -> store::Result<DeadList> {
        self.store().dead_letters(page).await
    }

    /// Dead letters by queue, type and error.
    pub async fn dead_groups(&self, which: GroupDead) -> store::Result<DeadGroups> {
        self.store().dead_groups(which).await
    }

    /// The store's clock, for filters with relative times.
    pub async fn now(&self) -> store::Result<Timestamp> {
        self.store().now().await
    }

    /// Replays dead letters, latest failure first: `per_second` of them each second, or all at
    /// once.
    pub async fn replay_dead(
        &self,
        tenant: &TenantName,
        filter: Filter,
        per_second: Option<f64>,
    ) -> store::Result<Bulk> {
        let spacing = per_second.map(spacing);
        let mut pages = Pages::new(self, tenant, filter).await?;
        let (start, mut sent) = (pages.start, 0_u32);
        while let Some(tasks) = pages.next().await? {
            let replay = |(task, number): (&Task, u32)| Replay {
                task: task.id,
                run: task.run,
                run_at: spacing
                    .map(|spacing| start.plus(spacing.saturating_mul(number).min(RUN_AHEAD))),
            };
            let tasks: Vec<_> = tasks.iter().zip(sent..).map(replay).collect();
            sent += u32::try_from(tasks.len()).unwrap_or(u32::MAX);
            let order = ReplayTasks { tenant: tenant.clone(), tasks, payload: None };
            pages.count(&self.store().replay(order).await?);
        }
        Ok(pages.bulk())
    }

    /// Deletes dead letters.
    pub async fn purge_dead(&self, tenant: &TenantName, filter: Filter) -> store::Result<Bulk> {
        let mut pages = Pages::new(self, tenant, filter).await?;
        while let Some(tasks) = pages.next().await? {
            let tasks = tasks.iter().map(|task| task.id).collect();
            let order =
                DeleteTasks { tenant: tenant.clone(), tasks, before: pages.page.filter.until };
            pages.count(&self.store().delete(order).await?);
        }
        Ok(pages.bulk())
    }
}

/// Dead letters page by page, without tasks that fail after the start: a task that is replayed and
/// fails again must not be replayed for ever.
struct Pages<'a> {
    engine: &'a Engine,
    start: Timestamp,
    page: ListDead,
    is_last: bool,
    seen: usize,
    done: usize,
}

impl<'a> Pages<'a> {
    async fn new(
        engine: &'a Engine,
        tenant: &TenantName,
        mut filter: Filter,
    ) -> store::Result<Self> {
        let start = engine.store().now().await?;
        let end = start.plus(Duration::from_millis(1));
        filter.until = Some(filter.until.map_or(end, |until| until.min(end)));
        let limit = u32::try_from(STORE_BATCH).expect("a batch is small");
        let page = ListDead { tenant: tenant.clone(), filter, before: None, limit };
        Ok(Self { engine, start, page, is_last: false, seen: 0, done: 0 })
    }

    /// The next page, up to the limit of one request.
    async fn next(&mut self) -> store::Result<Option<Vec<Task>>> {
        while !self.is_last && self.seen < DEAD_LETTERS {
            let found = self.engine.store().dead_letters(self.page.clone()).await?;
            self.page.before = found.next_before;
            self.is_last = found.next_before.is_none();
            self.seen += found.tasks.len();
            // An action on dead letters leaves system tasks alone.
            let is_system = |task: &Task| task.lane.queue.is_reserved();
            let tasks: Vec<_> = found.tasks.into_iter().filter(|task| !is_system(task)).collect();
            if !tasks.is_empty() {
                return Ok(Some(tasks));
            }
        }
        Ok(None)
    }

    fn count(&mut self, answers: &[Controlled]) {
        self.done += answers.iter().filter(|answer| **answer == Controlled::Done).count();
    }

    fn bulk(&self) -> Bulk {
        Bulk { count: self.done, more: !self.is_last }
    }
}
