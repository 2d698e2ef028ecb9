//! The loop that sees changes of watched tasks which nothing on this node tells: grants, releases, and
//! whatever other nodes do. It reads all watched tasks together, and sleeps while none is watched.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::limits::STORE_BATCH;
use duly_core::ports::store::{self, Store};
use duly_core::task::Task;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::task_waiters::TaskWaiters;

/// From one look to the next.
const EVERY: Duration = Duration::from_millis(150);
/// Ended tasks change only if someone runs them again: how many looks pass them over.
const SELDOM: u32 = 10;
/// How long to rest after a look, as a multiple of its time: most of the store is for others.
const REST: u32 = 10;

pub(crate) struct TaskPoll {
    store: Arc<dyn Store>,
    waiters: Arc<TaskWaiters>,
    /// The watched tasks, as they were at the last look.
    known: HashMap<TaskId, Option<Task>>,
    round: u32,
}

impl TaskPoll {
    pub(crate) fn new(store: Arc<dyn Store>, waiters: Arc<TaskWaiters>) -> Self {
        Self { store, waiters, known: HashMap::new(), round: 0 }
    }

    /// Runs until shutdown.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        shutdown.run_until_cancelled(self.keep_looking()).await;
    }

    async fn keep_looking(&mut self) {
        loop {
            let watched = self.waiters.polled();
            if watched.is_empty() {
                self.known = HashMap::new();
                self.waiters.polling().await;
                continue;
            }
            let began = Instant::now();
            if let Err(error) = self.run_once(watched).await {
                tracing::debug!(%error, "watched tasks wait for the store");
            }
            tokio::time::sleep(EVERY.max(began.elapsed() * REST)).await;
        }
    }

    /// Reads tasks, and wakes those who wait for one that has changed.
    async fn run_once(&mut self, watched: Vec<TaskId>) -> store::Result<()> {
        self.round += 1;
        let is_due = |known: Option<&Option<Task>>| match known {
            Some(Some(task)) => !task.status.is_terminal() || self.round.is_multiple_of(SELDOM),
            Some(None) => self.round.is_multiple_of(SELDOM),
            None => true,
        };
        let due: Vec<_> = watched.iter().copied().filter(|id| is_due(self.known.get(id))).collect();
        let watched: HashSet<_> = watched.into_iter().collect();
        self.known.retain(|id, _| watched.contains(id));
        for page in due.chunks(STORE_BATCH) {
            let found = self.store.tasks_of(page.to_vec(), false).await?;
            let mut found: HashMap<_, _> = found.into_iter().map(|task| (task.id, task)).collect();
            let mut changed = Vec::new();
            for id in page {
                let now = found.remove(id);
                if self.known.get(id).is_some_and(|known| *known != now) {
                    changed.push(*id);
                }
                self.known.insert(*id, now);
            }
            self.waiters.notify_changed(changed);
        }
        Ok(())
    }
}
