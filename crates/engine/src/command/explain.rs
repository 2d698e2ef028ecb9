//! Why does a task not run?

use std::collections::HashSet;

use duly_core::id::TaskId;
use duly_core::name::{Lane, TenantName};
use duly_core::ports::store::{self, Counted, Pause};
use duly_core::state::Status;
use duly_core::task::Task;
use duly_core::time::Timestamp;

use crate::engine::Engine;

/// A task and all that stands between it and its next start, the most decisive first.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The task.
    pub task: Task,
    /// Why it does not start; never empty.
    pub reasons: Vec<Reason>,
}

/// One thing to know about a task's next start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its time has not come.
    NotDue {
        /// When it comes.
        until: Timestamp,
    },
    /// An attempt failed, and the next one has to wait.
    WaitingForRetry {
        /// How long.
        until: Timestamp,
    },
    /// Its queue is paused.
    QueuePaused(Pause),
    /// No live worker has a handler for its type and serves its queue.
    NoWorker,
    /// All live workers that could run it drain.
    WorkersDrain {
        /// How many could.
        workers: usize,
    },
    /// It may be what its workers died of, and gets one that runs nothing else.
    Suspect,
    /// So many tasks of its queue come before it.
    BehindOthers(Counted),
    /// It is next; workers that could take it are busy, or one is about to.
    Next {
        /// How many workers could.
        workers: usize,
    },
    /// It runs.
    Running,
    /// It has ended.
    Ended,
}

impl Engine {
    /// Why a task does not run; nothing if there is no such task.
    pub async fn explain(
        &self,
        tenant: &TenantName,
        id: TaskId,
    ) -> store::Result<Option<Explanation>> {
        let Some(mut task) = self.get(tenant, id).await? else { return Ok(None) };
        let mut reasons = self.reasons(&task).await?;
        if reasons.is_none() {
            // It was granted or has ended since it was read.
            let Some(now) = self.get(tenant, id).await? else { return Ok(None) };
            task = now;
            reasons = self.reasons(&task).await?;
        }
        // One that waits whenever it is read, and never when its place is, is granted all the time.
        let reasons = reasons.unwrap_or_else(|| vec![Reason::Running]);
        Ok(Some(Explanation { task, reasons }))
    }

    /// What keeps this task from its next start; nothing if it does not wait any more.
    async fn reasons(&self, task: &Task) -> store::Result<Option<Vec<Reason>>> {
        match task.status {
            Status::Running => return Ok(Some(vec![Reason::Running])),
            Status::Success | Status::Failed | Status::Cancelled => {
                return Ok(Some(vec![Reason::Ended]));
            }
            Status::Pending | Status::Blocked => {}
        }
        let place = self.store().place(&task.lane.tenant, task.id).await?;
        let Some(place) = place else { return Ok(None) };
        let now = self.store().now().await?;
        let workers = self.workers_for(&task.lane).await?;
        let mut reasons = Vec::new();
        if task.run_at > now {
            let until = task.run_at;
            let again = task.charged > 0;
            reasons.push(match again {
                true => Reason::WaitingForRetry { until },
                false => Reason::NotDue { until },
            });
        }
        reasons.extend(place.paused.map(Reason::QueuePaused));
        let Able { workers, draining } = workers;
        if workers == 0 {
            reasons.push(Reason::NoWorker);
        } else if draining == workers {
            reasons.push(Reason::WorkersDrain { workers });
        }
        if task.is_suspect() {
            reasons.push(Reason::Suspect);
        }
        if task.run_at <= now && place.ahead != Counted::default() {
            reasons.push(Reason::BehindOthers(place.ahead));
        }
        if reasons.is_empty() {
            reasons.push(Reason::Next { workers: workers - draining });
        }
        Ok(Some(reasons))
    }

    /// How many live workers could run tasks of this lane: those of this node, and those that are
    /// known to the store.
    async fn workers_for(&self, lane: &Lane) -> store::Result<Able> {
        let mut elsewhere: HashSet<_> = self.store().serving(lane).await?.into_iter().collect();
        let mut able = Able::default();
        for desk in self.remotes().desks.read().iter().filter(|desk| desk.session().serves(lane)) {
            elsewhere.remove(&desk.session().id);
            able.workers += 1;
            able.draining += usize::from(desk.is_draining());
        }
        if !elsewhere.is_empty() {
            able.workers += elsewhere.len();
            able.draining += self.store().draining(elsewhere.into_iter().collect()).await?.len();
        }
        Ok(able)
    }
}

/// Live workers that serve a lane.
#[derive(Default)]
struct Able {
    workers: usize,
    /// How many of them take no new tasks.
    draining: usize,
}
