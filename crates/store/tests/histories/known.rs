//! What a history has come upon so far, and whom and what a step means in view of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use duly_core::id::{SessionId, TaskId, WorkflowId};
use duly_core::name::TenantName;
use duly_core::ports::store::{Claim, LaneFilter};
use duly_core::schedule::Schedule;
use duly_core::state::Status;
use duly_core::task::Task;
use duly_core::time::Timestamp;

use crate::call::Call;
use crate::meaning::{queue, type_name};
use crate::step::{ClaimStep, Step, What, Which, Who};

/// A session that was opened.
pub(crate) struct Worker {
    pub(crate) id: SessionId,
    pub(crate) remote: bool,
    pub(crate) open: bool,
    /// Its last claim.
    pub(crate) sequence: u64,
    /// What it was ever granted.
    pub(crate) leases: Vec<(TaskId, u32)>,
    /// How often it has beaten.
    pub(crate) beats: u64,
}

pub(crate) struct Known {
    pub(crate) now: Timestamp,
    pub(crate) tasks: Vec<TaskId>,
    /// Every workflow that was stored, and whether it is the other tenant's.
    pub(crate) workflows: Vec<(WorkflowId, bool)>,
    pub(crate) workers: Vec<Worker>,
    /// Every stored task, as both stores say.
    pub(crate) state: BTreeMap<TaskId, Task>,
    pub(crate) calls: Vec<Call>,
    pub(crate) ordinal: u32,
    /// The version of the settings.
    pub(crate) version: u64,
    /// Both schedules, as both stores say.
    pub(crate) schedules: [Option<Schedule>; 2],
}

pub(crate) fn tenant(other: bool) -> TenantName {
    if other { TenantName::new("other").unwrap() } else { TenantName::default_tenant() }
}

/// Counted from the last one.
pub(crate) fn pick<T>(of: &[T], back: u8) -> Option<&T> {
    let back = usize::from(back).checked_rem(of.len())?;
    of.get(of.len() - 1 - back)
}

impl Known {
    pub(crate) fn new(now: Timestamp) -> Self {
        let (tasks, workers, calls) = (Vec::new(), Vec::new(), Vec::new());
        let workflows = Vec::new();
        Self {
            now,
            tasks,
            workflows,
            workers,
            state: BTreeMap::new(),
            calls,
            ordinal: 0,
            version: 0,
            schedules: [None, None],
        }
    }

    /// Whether a step is about an open session, and there is none.
    pub(crate) fn needs_worker(&self, step: &Step) -> bool {
        let (Step::Heartbeat { who, .. }
        | Step::End { who, .. }
        | Step::Exchange { who, .. }
        | Step::Extend { who, .. }
        | Step::Report { who, .. }) = step
        else {
            return false;
        };
        matches!(who, Who::Open(_) | Who::Busy(_)) && !self.workers.iter().any(|it| it.open)
    }

    pub(crate) fn next_ordinal(&mut self) -> u32 {
        self.ordinal += 1;
        self.ordinal
    }

    pub(crate) fn worker(&self, who: Who) -> Option<&Worker> {
        match who {
            Who::Busy(back) => {
                let running = self.state.values().filter(|task| task.status == Status::Running);
                let holders: Vec<_> = running.filter_map(|task| task.session).collect();
                let busy = self.workers.iter().filter(|worker| holders.contains(&worker.id));
                let busy = pick(&busy.collect::<Vec<_>>(), back).copied();
                busy.or_else(|| self.worker(Who::Open(back)))
            }
            Who::Open(back) => {
                let open: Vec<_> = self.workers.iter().filter(|worker| worker.open).collect();
                pick(&open, back).copied()
            }
            Who::Any(back) => pick(&self.workers, back),
            Who::Unknown => None,
        }
    }

    pub(crate) fn who(&self, who: Who) -> SessionId {
        self.worker(who).map_or_else(|| SessionId::mint(self.now, 999), |worker| worker.id)
    }

    pub(crate) fn what(&self, what: What) -> TaskId {
        let known = match what {
            What::Fit(back) | What::Known(back) => pick(&self.tasks, back).copied(),
            What::Nothing => None,
        };
        known.unwrap_or_else(|| TaskId::mint(self.now, 999, 999))
    }

    /// The same, for an order that makes sense for some tasks only.
    pub(crate) fn what_fits(&self, what: What, fits: impl Fn(&Task) -> bool) -> TaskId {
        let What::Fit(back) = what else { return self.what(what) };
        let fitting: Vec<_> = self.state.values().filter(|task| fits(task)).collect();
        pick(&fitting, back).map_or_else(|| self.what(what), |task| task.id)
    }

    pub(crate) fn which(&self, session: SessionId, which: Which) -> (TaskId, u32) {
        let running = |own: bool| -> Vec<_> {
            let running = self.state.values().filter(|task| task.status == Status::Running);
            let held = running.filter(|task| (task.session == Some(session)) == own);
            held.map(|task| (task.id, task.epoch)).collect()
        };
        let worker = self.workers.iter().find(|worker| worker.id == session);
        let found = match which {
            Which::Held(back) => pick(&running(true), back).copied(),
            Which::Past(back) => worker.and_then(|it| pick(&it.leases, back)).copied(),
            Which::Foreign(back) => pick(&running(false), back).copied(),
            Which::MadeUp(what) => {
                let task = self.what(what);
                Some((task, self.state.get(&task).map_or(1, |stored| stored.epoch + 1)))
            }
        };
        let past = || worker.and_then(|worker| worker.leases.last()).copied();
        found.or_else(past).unwrap_or_else(|| (self.what(What::Known(0)), 1))
    }

    pub(crate) fn claim(&self, session: SessionId, step: ClaimStep) -> Claim {
        let last = self.workers.iter().find(|it| it.id == session).map_or(0, |it| it.sequence);
        let sequence = (last + 1).saturating_sub(u64::from(step.back)).max(1);
        let only = LaneFilter {
            queues: step.queue.map(queue).into_iter().collect(),
            types: step.task_type.map(type_name).into_iter().collect(),
        };
        let only = (only != LaneFilter::default()).then(|| Arc::new(only));
        Claim { only, ..Claim::new(session, sequence, step.max) }
    }
}
