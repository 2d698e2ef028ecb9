//! The state of the reference model and what each command does to it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use duly_core::audit::AuditEntry;
use duly_core::id::{SessionId, TaskId, WorkflowId};
use duly_core::lease::Lease;
use duly_core::limits::{ATTEMPTS, IDEMPOTENCY_KEY_TTL, LANES};
use duly_core::name::{Lane, QueueName, TenantName};
use duly_core::ports::store::{
    Claim, LogPart, OpenSession, Pause, Rules, Submit, Submitted, VersionedSettings,
};
use duly_core::state::Status;
use duly_core::task::{Attempt, Failure, NewTask, Task};
use duly_core::tenant::TenantRecord;
use duly_core::time::Timestamp;
use duly_core::workflow::Workflow;

use super::cascade::StoredEdge;
use super::keys::ApiKeys;
use super::outbox::Outbox;
use super::schedules::Schedules;

pub(super) struct Model {
    pub(super) rules: Rules,
    pub(super) tasks: BTreeMap<TaskId, Task>,
    pub(super) attempts: HashMap<TaskId, Vec<Attempt>>,
    pub(super) lanes: BTreeSet<Lane>,
    /// The queues from which nothing is granted.
    pub(super) paused: HashMap<(TenantName, QueueName), Pause>,
    /// By task, epoch and offset.
    pub(super) logs: BTreeMap<(TaskId, u32, u64), LogPart>,
    keys: HashMap<(TenantName, String), Key<TaskId>>,
    pub(super) workflow_keys: HashMap<(TenantName, String), Key<WorkflowId>>,
    pub(super) workflows: BTreeMap<WorkflowId, Workflow>,
    /// Workflows that fail fast and have failed.
    pub(super) failing: BTreeSet<WorkflowId>,
    /// By parent and child.
    pub(super) edges: BTreeMap<(TaskId, TaskId), StoredEdge>,
    /// How long blocked tasks wait once they are released; nothing if they have a run time.
    pub(super) delays: HashMap<TaskId, Option<Duration>>,
    /// Tasks that ended in this call.
    pub(super) unsettled: Vec<TaskId>,
    /// When the first task is due that was released since the last hint.
    pub(super) released: Option<Timestamp>,
    pub(super) sessions: HashMap<SessionId, Session>,
    /// What each claim was granted.
    pub(super) grants: HashMap<(SessionId, u64), Grant>,
    /// When each lease is overdue; those of leases that have ended say nothing.
    pub(super) deadlines: HashMap<TaskId, Timestamp>,
    /// Leases whose deadline was moved.
    pub(super) extended: HashSet<(TaskId, u32)>,
    names: HashMap<SessionId, String>,
    /// When each session that is still remembered has ended.
    pub(super) ended: HashMap<SessionId, Timestamp>,
    /// Versions of the settings, oldest first.
    pub(super) settings: Vec<VersionedSettings>,
    pub(super) schedules: Schedules,
    /// The audit log, oldest first.
    pub(super) audit: Vec<AuditEntry>,
    /// The number of the newest entry there ever was.
    pub(super) audited: u64,
    /// How many tasks an order has told to run again.
    pub(super) counted: u64,
    pub(super) api_keys: ApiKeys,
    pub(super) tenants: BTreeMap<TenantName, TenantRecord>,
    pub(super) outbox: Outbox,
}

/// A batch of leases.
pub(super) struct Grant {
    pub(super) leases: Vec<(TaskId, u32)>,
    /// When it was last handed to its session.
    pub(super) served_at: Timestamp,
    /// Whether the session said that it has it.
    pub(super) received: bool,
}

/// What an idempotency key names.
pub(super) struct Key<T> {
    pub(super) names: T,
    pub(super) body: [u8; 32],
    pub(super) created_at: Timestamp,
}

pub(super) struct Session {
    pub(super) opened: OpenSession,
    /// The newest claim.
    pub(super) newest: u64,
    pub(super) beat: u64,
    pub(super) beat_at: Timestamp,
    /// Whether it is to be granted nothing more.
    pub(super) draining: bool,
    pub(super) unstarted: HashSet<TaskId>,
    /// The quarantined task for which it takes nothing more until it holds nothing.
    pub(super) waits_for: Option<TaskId>,
}

/// The earliest due time that a command put back or stored.
pub(super) type Hint = Option<Timestamp>;

impl Model {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            tasks: BTreeMap::new(),
            attempts: HashMap::new(),
            logs: BTreeMap::new(),
            lanes: BTreeSet::new(),
            paused: HashMap::new(),
            keys: HashMap::new(),
            workflow_keys: HashMap::new(),
            workflows: BTreeMap::new(),
            failing: BTreeSet::new(),
            edges: BTreeMap::new(),
            delays: HashMap::new(),
            unsettled: Vec::new(),
            released: None,
            sessions: HashMap::new(),
            grants: HashMap::new(),
            deadlines: HashMap::new(),
            extended: HashSet::new(),
            names: HashMap::new(),
            ended: HashMap::new(),
            settings: Vec::new(),
            schedules: Schedules::default(),
            audit: Vec::new(),
            audited: 0,
            counted: 0,
            api_keys: ApiKeys::new(),
            tenants: BTreeMap::new(),
            outbox: Outbox::default(),
        }
    }

    pub(super) fn submit(&mut self, batch: &Submit, now: Timestamp) -> (Vec<Submitted>, Hint) {
        // What this very batch hands off does not close the offer for the rest of it.
        let open = batch.offer.as_ref().is_some_and(|offer| !self.is_isolating(offer.session));
        let mut granted = Vec::new();
        let mut hint = None;
        let mut answers = Vec::new();
        for task in &batch.tasks {
            let answer = self.submit_one(task, batch.offer.as_ref(), open, &mut granted, now);
            let stored = matches!(answer, Submitted::Stored { .. });
            if stored && self.tasks[&task.id].status == Status::Pending {
                hint = earliest(hint, self.tasks[&task.id].run_at);
            }
            answers.push(answer);
        }
        if let (Some(offer), false) = (&batch.offer, granted.is_empty()) {
            self.note_grants(offer, granted, now);
        }
        (answers, hint)
    }

    fn submit_one(
        &mut self,
        task: &NewTask,
        offer: Option<&Claim>,
        open: bool,
        granted: &mut Vec<(TaskId, u32)>,
        now: Timestamp,
    ) -> Submitted {
        if self.tasks.contains_key(&task.id) {
            return self.repeated(task, offer);
        }
        if let Some(answer) = self.known_key(task, now) {
            return answer;
        }
        if !self.lanes.contains(&task.lane) && self.lanes.len() >= LANES {
            return Submitted::LaneLimit;
        }
        if let Some(refused) = self.refuses_links(task) {
            return refused;
        }
        let hand_off = offer.filter(|offer| {
            open && task.links.is_none()
                && granted.len() < offer.max
                && self.admits(offer)
                && offer.accepts(&task.lane)
                && self.serves(offer.session, &task.lane)
                && task.due_at(now) <= now
                && !self.is_due(&task.lane, now)
        });
        let holder = hand_off.map(|offer| offer.session);
        self.lanes.insert(task.lane.clone());
        if let Some(idempotency) = &task.idempotency {
            let key = Key { names: task.id, body: idempotency.body, created_at: now };
            self.keys.insert((task.lane.tenant.clone(), idempotency.key.clone()), key);
        }
        self.stored(task, holder, now);
        if self.tasks[&task.id].status == Status::Blocked {
            return Submitted::Blocked { at: now };
        }
        if holder.is_none() {
            return Submitted::Stored { at: now };
        }
        let epoch = self.tasks[&task.id].epoch;
        granted.push((task.id, epoch));
        Submitted::HandedOff { epoch, granted_at: now }
    }

    fn repeated(&self, task: &NewTask, offer: Option<&Claim>) -> Submitted {
        let stored = &self.tasks[&task.id];
        let batch = offer.and_then(|offer| self.grants.get(&(offer.session, offer.sequence)));
        let same_grant = batch.is_some_and(|batch| batch.leases.contains(&(task.id, stored.epoch)));
        match stored.granted_at {
            Some(granted_at) if same_grant && stored.status == Status::Running => {
                Submitted::HandedOff { epoch: stored.epoch, granted_at }
            }
            _ if stored.status == Status::Blocked => Submitted::Blocked { at: stored.created_at },
            _ => Submitted::Stored { at: stored.created_at },
        }
    }

    fn known_key(&self, task: &NewTask, now: Timestamp) -> Option<Submitted> {
        let idempotency = task.idempotency.as_ref()?;
        let key = (task.lane.tenant.clone(), idempotency.key.clone());
        let known = self.keys.get(&key).filter(|key| self.tasks.contains_key(&key.names))?;
        if now >= known.created_at.plus(IDEMPOTENCY_KEY_TTL) {
            return None;
        }
        if known.body != idempotency.body {
            return Some(Submitted::KeyReused);
        }
        Some(Submitted::Replayed { id: known.names })
    }

    pub(super) fn get(&self, tenant: &TenantName, id: TaskId) -> Option<Task> {
        self.tasks.get(&id).filter(|task| task.lane.tenant == *tenant).map(|task| self.named(task))
    }

    pub(super) fn named(&self, task: &Task) -> Task {
        let name = task.session.and_then(|session| self.names.get(&session));
        Task { worker: name.cloned(), ..task.clone() }
    }

    pub(super) fn attempts(&self, tenant: &TenantName, id: TaskId) -> Option<Vec<Attempt>> {
        self.get(tenant, id)?;
        let kept = self.attempts.get(&id).into_iter().flatten().cloned();
        let success = self.named(&self.tasks[&id]).success();
        let with_log = |it: Attempt| Attempt { log: self.excerpt(id, it.epoch), ..it };
        let mut attempts: Vec<_> = kept.chain(success).map(with_log).collect();
        attempts.drain(..attempts.len().saturating_sub(ATTEMPTS));
        Some(attempts)
    }

    /// Keeps an attempt that failed or was lost. It counts from its grant if it is not known when its
    /// handler started.
    pub(super) fn record(
        &mut self,
        id: TaskId,
        error: Failure,
        started_at: Option<Timestamp>,
        now: Timestamp,
    ) {
        let task = &self.tasks[&id];
        self.keep(
            id,
            Attempt {
                run: task.run,
                attempt: task.charged + 1,
                epoch: task.epoch,
                started_at: started_at.or(task.granted_at).expect("it runs"),
                ended_at: now,
                worker: self.named(task).worker,
                error: Some(error),
                log: None,
            },
        );
    }

    pub(super) fn keep(&mut self, id: TaskId, attempt: Attempt) {
        let kept = self.attempts.entry(id).or_default();
        kept.push(attempt);
        let surplus = kept.len().saturating_sub(ATTEMPTS);
        let forgotten = kept.drain(..surplus).map(|attempt| attempt.epoch).max();
        self.forget_logs(id, forgotten.unwrap_or(0));
    }

    /// Names a session; whether it has no name yet. Names outlive their sessions.
    pub(super) fn name(&mut self, session: SessionId, name: &str) -> bool {
        let is_new = !self.names.contains_key(&session);
        self.names.entry(session).or_insert_with(|| name.to_owned());
        is_new
    }

    /// The name of this worker is lost, unless another session has the same.
    pub(super) fn forget_name(&mut self, session: SessionId) {
        let name = self.names.remove(&session);
        if !self.names.values().any(|other| Some(other) == name.as_ref()) {
            let attempts = self.attempts.values_mut().flatten();
            attempts.filter(|it| it.worker == name).for_each(|it| it.worker = None);
        }
    }

    /// Whether a session may be granted tasks of this lane now.
    pub(super) fn serves(&self, session: SessionId, lane: &Lane) -> bool {
        self.sessions.get(&session).is_some_and(|session| {
            let OpenSession { tenant, types, queues, .. } = &session.opened;
            types.contains(&lane.task_type)
                && (queues.is_empty() || queues.contains(&lane.queue))
                && tenant.as_ref().is_none_or(|tenant| *tenant == lane.tenant)
                && !self.paused.contains_key(&(lane.tenant.clone(), lane.queue.clone()))
                && !self.is_suspended(&lane.tenant)
        })
    }

    /// Whether something in the lane is due that is not quarantined.
    fn is_due(&self, lane: &Lane, now: Timestamp) -> bool {
        let waits = |task: &Task| task.status == Status::Pending && task.run_at <= now;
        let is_open = |task: &Task| waits(task) && !task.is_quarantined();
        self.tasks.values().any(|task| task.lane == *lane && is_open(task))
    }
}

/// When a lease is overdue that is granted as the task says.
pub(super) fn deadline(task: &Task) -> Timestamp {
    task.granted_at.map_or(task.run_at, |_| lease(task).deadline())
}

pub(super) fn lease(task: &Task) -> Lease {
    Lease {
        task: task.id,
        epoch: task.epoch,
        run: task.run,
        attempt: task.charged + 1,
        retries: task.retries,
        lane: task.lane.clone(),
        timeout: task.timeout,
        granted_at: task.granted_at.expect("granted"),
        run_at: task.run_at,
        payload: Arc::clone(&task.payload),
        has_parents: task.links.as_ref().is_some_and(|it| !it.dependencies.is_empty()),
        has_children: false,
        renders: task.links.as_ref().is_some_and(|it| it.render),
        parents: None,
    }
}

pub(super) fn holds(task: &Task, session: SessionId) -> bool {
    task.status == Status::Running && task.session == Some(session)
}

pub(super) fn earliest(hint: Hint, due: Timestamp) -> Hint {
    Some(hint.map_or(due, |known| known.min(due)))
}
