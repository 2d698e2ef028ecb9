//! What the reference model does with claims and outcomes.

use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::limits::STORE_BATCH_BYTES;
use duly_core::ports::store::{Claim, Exchange, Exchanged, Extend, ExtendLeases, Extended};
use duly_core::state::{Event, Status};
use duly_core::task::{NewTask, Task, claim_order};
use duly_core::time::Timestamp;

use super::model::{Grant, Hint, Model, earliest, holds, lease};
use super::task_state::End;

impl Model {
    pub(super) fn exchange(&mut self, exchange: &Exchange, now: Timestamp) -> (Exchanged, Hint) {
        let mut hint = None;
        let mut finished = Vec::new();
        for item in &exchange.finishes {
            finished.push(match self.finish(exchange.session, item, now) {
                Finished::LeaseLost if self.was_acknowledged(exchange, item) => Finished::Done,
                answer => answer,
            });
            if let Some(task) = self.tasks.get(&item.task)
                && task.status == Status::Pending
            {
                hint = earliest(hint, task.run_at);
            }
        }
        self.settle(now);
        hint = hint.into_iter().chain(self.released.take()).min();
        let known = |claim: &Claim| self.sessions.contains_key(&claim.session);
        let claim = exchange.claim.as_ref();
        let echo = claim.is_some_and(|claim| known(claim) && !self.admits(claim));
        let leases = claim.map_or_else(Vec::new, |claim| self.claim(claim, now));
        let served = !(echo && leases.is_empty());
        let next_due = if served { self.next_due(exchange, now) } else { None };
        (Exchanged { finished, leases, parents: None, next_due }, hint)
    }

    fn finish(&mut self, session: SessionId, item: &Finish, now: Timestamp) -> Finished {
        let Some(task) = self.tasks.get(&item.task) else { return Finished::Unknown };
        if self.is_foreign(session, task) {
            return Finished::Unknown;
        }
        if task.epoch != item.epoch || task.session != Some(session) {
            return Finished::LeaseLost;
        }
        if task.status != Status::Running {
            let repeats = match item.outcome {
                Outcome::Success { .. } => task.status == Status::Success,
                Outcome::Fail { .. } => task.status == Status::Failed,
                Outcome::Retry { .. } => matches!(task.status, Status::Pending | Status::Failed),
                Outcome::Release => task.status == Status::Pending,
            };
            return if repeats { Finished::Done } else { Finished::LeaseLost };
        }
        for (_, grant) in self.grants.iter_mut().filter(|((holder, _), _)| *holder == session) {
            grant.received |= grant.leases.contains(&(item.task, item.epoch));
        }
        if let Some(progress) = &item.progress {
            self.write_progress(item.task, progress, now);
        }
        if let Some(chunk) = &item.log {
            self.write_log(item.task, chunk, now);
        }
        if let Outcome::Retry { error, .. } | Outcome::Fail { error } = &item.outcome {
            let granted_at = self.tasks[&item.task].granted_at.expect("it runs");
            self.record(item.task, error.clone(), item.started_at(now, granted_at), now);
        }
        if let (Outcome::Success { .. }, Some(then)) = (&item.outcome, &item.then) {
            self.add_tasks(then, now);
        }
        self.conclude(item.task, &item.outcome, now);
        let task = self.tasks.get_mut(&item.task).expect("looked up above");
        let started_at = task.granted_at.and_then(|granted_at| item.started_at(now, granted_at));
        task.started_at = started_at.filter(|_| task.status.is_terminal());
        Finished::Done
    }

    /// Stores the tasks that come with an outcome, which is committed next and releases them.
    fn add_tasks(&mut self, tasks: &[NewTask], now: Timestamp) {
        for task in tasks {
            if !self.tasks.contains_key(&task.id) {
                self.lanes.insert(task.lane.clone());
                self.stored(task, None, now);
            }
        }
    }

    /// Ends the lease of a running task by this outcome.
    pub(super) fn conclude(&mut self, id: TaskId, outcome: &Outcome, now: Timestamp) {
        let task = self.tasks.get_mut(&id).expect("it runs");
        task.charged += u32::from(*outcome != Outcome::Release);
        match outcome {
            Outcome::Success { result } => {
                let end = End { at: now, result: result.clone(), error: None };
                self.ended(id, Event::Succeed, end);
            }
            Outcome::Retry { error, entropy, after } if task.charged <= task.retries => {
                task.error = Some(error.clone());
                task.run_at = now.plus(task.back_off.wait_or(*after, task.charged, *entropy));
                self.waiting(id, Event::Retry, now);
            }
            Outcome::Fail { error } | Outcome::Retry { error, .. } => {
                let end = End { at: now, result: None, error: Some(error.clone()) };
                self.ended(id, Event::Fail, end);
            }
            Outcome::Release => self.waiting(id, Event::Release, now),
        }
    }

    /// Whether this exchange is a repeated one, whose claim was granted the task again right after
    /// this outcome had put it back.
    fn was_acknowledged(&self, exchange: &Exchange, item: &Finish) -> bool {
        let claim = exchange.claim.as_ref().map(|claim| (claim.session, claim.sequence));
        let Some(grant) = claim.and_then(|claim| self.grants.get(&claim)) else { return false };
        let task = &self.tasks[&item.task];
        let again = task.epoch == item.epoch + 1 && holds(task, exchange.session);
        let kept = self.attempts.get(&item.task).and_then(|kept| kept.last());
        let kept = kept.filter(|kept| kept.epoch == item.epoch);
        let same = match &item.outcome {
            Outcome::Release => kept.is_none(),
            Outcome::Retry { error, .. } => kept.is_some_and(|it| it.error.as_ref() == Some(error)),
            Outcome::Success { .. } | Outcome::Fail { .. } => false,
        };
        same && again && grant.leases.contains(&(item.task, task.epoch))
    }

    fn claim(&mut self, claim: &Claim, now: Timestamp) -> Vec<Lease> {
        if !self.sessions.contains_key(&claim.session) {
            return Vec::new();
        }
        if !self.admits(claim) {
            return self.granted_before(claim, now);
        }
        let session = self.sessions.get_mut(&claim.session).expect("looked up above");
        session.newest = claim.sequence;
        session.waits_for = None;
        let leases = self.pick(claim, now);
        if !leases.is_empty() {
            let granted = leases.iter().map(|lease| (lease.task, lease.epoch)).collect();
            self.note_grants(claim, granted, now);
        }
        leases
    }

    fn pick(&mut self, claim: &Claim, now: Timestamp) -> Vec<Lease> {
        let idle = !self.holds_any(claim.session);
        if self.is_isolating(claim.session) {
            return Vec::new();
        }
        let waiting = self.claimable(claim.session, Some(claim)).into_iter();
        let due = waiting.filter(|task| task.run_at <= now);
        let mut order: Vec<_> =
            due.map(|task| (claim_order(task.run_at, task.priority), task.id)).collect();
        order.sort_unstable();
        let (mut leases, mut bytes) = (Vec::new(), 0);
        for (_, id) in order {
            if leases.len() == claim.max {
                break;
            }
            let quarantined = self.tasks[&id].is_quarantined();
            if quarantined && !(idle && leases.is_empty()) {
                if self.is_waited_for(id, claim.session) {
                    continue;
                }
                let session = self.sessions.get_mut(&claim.session).expect("it claims");
                session.waits_for = Some(id);
                break;
            }
            bytes += self.tasks[&id].payload.len();
            if bytes > STORE_BATCH_BYTES && !leases.is_empty() {
                break;
            }
            leases.push(self.granted(id, claim.session, now));
            if quarantined {
                break;
            }
        }
        leases
    }

    /// Whether another session takes nothing more until it can take this quarantined task.
    fn is_waited_for(&self, task: TaskId, by_other_than: SessionId) -> bool {
        let mut waiting = self.sessions.iter().filter(|(_, it)| it.waits_for == Some(task));
        waiting.any(|(id, _)| *id != by_other_than && self.holds_any(*id))
    }

    /// Whether a session gets nothing because of a quarantined task that it holds or waits for.
    pub(super) fn is_isolating(&self, id: SessionId) -> bool {
        let waits = self.sessions.get(&id).is_some_and(|session| session.waits_for.is_some());
        let mut held = self.tasks.values().filter(|task| holds(task, id));
        (waits && self.holds_any(id)) || held.any(Task::is_quarantined)
    }

    fn holds_any(&self, id: SessionId) -> bool {
        self.tasks.values().any(|task| holds(task, id))
    }

    /// A lease that tells whether other tasks depend on its own.
    pub(super) fn with_children(&self, lease: Lease) -> Lease {
        let has_children = self.edges.keys().any(|(parent, _)| *parent == lease.task);
        Lease { has_children, ..lease }
    }

    fn granted_before(&mut self, claim: &Claim, now: Timestamp) -> Vec<Lease> {
        let batch = (claim.session, claim.sequence);
        let Some(grant) = self.grants.get_mut(&batch) else {
            return Vec::new();
        };
        grant.served_at = now;
        let tasks = self.grants[&batch].leases.iter().filter_map(|(id, epoch)| {
            self.tasks.get(id).filter(|task| task.epoch == *epoch && holds(task, claim.session))
        });
        tasks.map(|task| self.with_children(lease(task))).collect()
    }

    pub(super) fn note_grants(
        &mut self,
        claim: &Claim,
        leases: Vec<(TaskId, u32)>,
        now: Timestamp,
    ) {
        let grant = Grant { leases, served_at: now, received: false };
        self.grants.insert((claim.session, claim.sequence), grant);
        if let Some(session) = self.sessions.get_mut(&claim.session) {
            session.newest = claim.sequence;
        }
    }

    pub(super) fn admits(&self, claim: &Claim) -> bool {
        let newest = self.sessions.get(&claim.session).map(|session| session.newest);
        let grant = self.grants.get(&(claim.session, claim.sequence));
        let live = |(id, epoch): &(TaskId, u32)| {
            let task = self.tasks.get(id).filter(|task| task.epoch == *epoch);
            task.is_some_and(|task| holds(task, claim.session))
        };
        // What was taken back before its session acknowledged it was never granted, as far as the
        // session knows.
        let spent = grant.is_some_and(|it| it.received || it.leases.iter().any(live));
        newest.is_some_and(|newest| claim.sequence >= newest && !spent)
    }

    /// Whether a session may not even know of a task.
    pub(super) fn is_foreign(&self, session: SessionId, task: &Task) -> bool {
        let tenant = self.sessions.get(&session).and_then(|it| it.opened.tenant.as_ref());
        tenant.is_some_and(|tenant| *tenant != task.lane.tenant)
    }

    /// The waiting tasks that a session may be granted, now or later, by this claim if there is one.
    fn claimable(&self, session: SessionId, claim: Option<&Claim>) -> Vec<&Task> {
        let pending = self.tasks.values().filter(|task| task.status == Status::Pending);
        let accepts = |task: &Task| claim.is_none_or(|claim| claim.accepts(&task.lane));
        pending.filter(|task| accepts(task) && self.serves(session, &task.lane)).collect()
    }

    fn next_due(&self, exchange: &Exchange, now: Timestamp) -> Option<Timestamp> {
        let session = exchange.session;
        if self.is_isolating(session) {
            return None;
        }
        let busy = self.holds_any(session);
        let passed_by = |task: &Task| busy && task.is_quarantined() && task.run_at <= now;
        let waiting = self.claimable(session, exchange.claim.as_ref()).into_iter();
        let waiting = waiting.filter(|task| !passed_by(task));
        waiting.map(|task| task.run_at).min()
    }

    pub(super) fn extend(&mut self, order: &ExtendLeases, now: Timestamp) -> Vec<Extended> {
        let mut answers = Vec::new();
        for Extend { task: id, epoch, by } in &order.leases {
            let Some(task) = self.tasks.get(id) else {
                answers.push(Extended::Unknown);
                continue;
            };
            if self.is_foreign(order.session, task) {
                answers.push(Extended::Unknown);
                continue;
            }
            if task.epoch != *epoch || !holds(task, order.session) {
                answers.push(Extended::LeaseLost);
                continue;
            }
            let deadline = now.plus(*by);
            self.deadlines.insert(*id, deadline);
            self.extended.insert((*id, *epoch));
            answers.push(Extended::Done { deadline });
        }
        answers
    }
}
