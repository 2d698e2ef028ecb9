//! Explain why a task does not run.

use std::collections::HashSet;

use duly_core::id::TaskId;
use duly_core::name::{Lane, TenantName};
use duly_core::ports::store::{self, Counted, Parent, Pause};
use duly_core::state::Status;
use duly_core::task::Task;
use duly_core::time::Timestamp;
use duly_core::workflow::EdgeState;

use crate::engine::Engine;

/// Parents that an explanation names.
const OPEN_PARENTS: usize = 100;

/// A task and the reasons why it does not start, the most decisive first.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The task.
    pub task: Task,
    /// Never empty.
    pub reasons: Vec<Reason>,
}

/// Why a task does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is not due.
    NotDue {
        /// When it is due.
        until: Timestamp,
    },
    /// An attempt failed, and the next one waits for its back-off.
    WaitingForRetry {
        /// When the next attempt is due.
        until: Timestamp,
    },
    /// It waits for other tasks to end.
    Blocked {
        /// Those that have not ended or ended otherwise; not more than a few.
        parents: Vec<Parent>,
        /// How many there are.
        open: usize,
    },
    /// Its queue is paused.
    QueuePaused(Pause),
    /// No live worker has a handler for its type and serves its queue.
    NoWorker,
    /// All live workers that could run it drain.
    WorkersDrain {
        /// How many workers.
        workers: usize,
    },
    /// Workers died while they ran it, so it waits for a worker that runs nothing else.
    Quarantined,
    /// Other tasks of its queue are ahead of it.
    BehindOthers(Counted),
    /// It is next: a worker is about to take it, or all that could are busy.
    Next {
        /// How many workers could take it.
        workers: usize,
    },
    /// It runs.
    Running,
    /// It has ended.
    Ended,
}

impl Engine {
    /// Why a task does not run; `None` if there is no such task.
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
        // A task that waits when it is read but has no place in its queue then is granted over and
        // over.
        let reasons = reasons.unwrap_or_else(|| vec![Reason::Running]);
        Ok(Some(Explanation { task, reasons }))
    }

    /// What keeps this task from starting; `None` if it no longer waits.
    async fn reasons(&self, task: &Task) -> store::Result<Option<Vec<Reason>>> {
        match task.status {
            Status::Running => return Ok(Some(vec![Reason::Running])),
            Status::Success | Status::Failed | Status::Cancelled => {
                return Ok(Some(vec![Reason::Ended]));
            }
            Status::Blocked => return self.blocked(task).await.map(Some),
            Status::Pending => {}
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
        if task.is_quarantined() {
            reasons.push(Reason::Quarantined);
        }
        if task.run_at <= now && place.ahead != Counted::default() {
            reasons.push(Reason::BehindOthers(place.ahead));
        }
        if reasons.is_empty() {
            reasons.push(Reason::Next { workers: workers - draining });
        }
        Ok(Some(reasons))
    }

    /// What a blocked task waits for.
    async fn blocked(&self, task: &Task) -> store::Result<Vec<Reason>> {
        let found = self.store().parents(vec![task.id]).await?.pop().unwrap_or_default();
        let is_open = |parent: &Parent| parent.edge != EdgeState::Satisfied;
        let mut parents: Vec<_> = found.into_iter().filter(is_open).collect();
        let open = parents.len();
        parents.truncate(OPEN_PARENTS);
        Ok(vec![Reason::Blocked { parents, open }])
    }

    /// How many live workers could run tasks of this lane: those that claim through this node, and
    /// those that the store knows.
    async fn workers_for(&self, lane: &Lane) -> store::Result<Able> {
        let mut others: HashSet<_> = self.store().serving(lane).await?.into_iter().collect();
        let mut able = Able::default();
        let slots = &self.sessions().claim_slots;
        for slot in slots.read().iter().filter(|slot| slot.session().serves(lane)) {
            others.remove(&slot.session().id);
            able.workers += 1;
            able.draining += usize::from(slot.is_draining());
        }
        if !others.is_empty() {
            able.workers += others.len();
            able.draining += self.store().draining(others.into_iter().collect()).await?.len();
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
