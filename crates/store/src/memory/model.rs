//! The state of the reference model and what each command does to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::limits::{IDEMPOTENCY_KEY_TTL, LANES, LOSSES, PAGE_BYTES, STORE_BATCH_BYTES};
use duly_core::name::{Lane, TenantName};
use duly_core::ports::store::{
    Claim, Exchange, Exchanged, ListTasks, OpenSession, Submit, Submitted, TaskList,
};
use duly_core::state::{Event, Status, transition};
use duly_core::task::{Failure, NewTask, Task, claim_order};
use duly_core::time::Timestamp;

#[derive(Default)]
pub(super) struct Model {
    tasks: BTreeMap<TaskId, Task>,
    lanes: BTreeSet<Lane>,
    keys: HashMap<(TenantName, String), Key>,
    sessions: HashMap<SessionId, Session>,
    /// What each claim was granted.
    grants: HashMap<(SessionId, u64), Vec<(TaskId, u32)>>,
    names: HashMap<SessionId, String>,
}

struct Key {
    task: TaskId,
    body: [u8; 32],
    created_at: Timestamp,
}

struct Session {
    opened: OpenSession,
    newest: u64,
}

/// The earliest due time that a command put back or stored.
type Hint = Option<Timestamp>;

impl Model {
    pub(super) fn submit(&mut self, batch: &Submit, now: Timestamp) -> (Vec<Submitted>, Hint) {
        let mut granted = Vec::new();
        let mut hint = None;
        let mut answers = Vec::new();
        for task in &batch.tasks {
            let answer = self.submit_one(task, batch.offer.as_ref(), &mut granted, now);
            if answer == Submitted::Stored && self.tasks[&task.id].status == Status::Pending {
                hint = earliest(hint, task.run_at);
            }
            answers.push(answer);
        }
        if let (Some(offer), false) = (&batch.offer, granted.is_empty()) {
            self.note_grants(offer, granted);
        }
        (answers, hint)
    }

    fn submit_one(
        &mut self,
        task: &NewTask,
        offer: Option<&Claim>,
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
        let hand_off = offer.filter(|offer| {
            granted.len() < offer.max
                && self.admits(offer)
                && self.serves(offer.session, &task.lane)
                && task.run_at <= now
                && !self.is_due(&task.lane, now)
        });
        let mut stored = store(task);
        let answer = match hand_off {
            Some(offer) => {
                grant(&mut stored, offer.session, now);
                granted.push((task.id, stored.epoch));
                Submitted::HandedOff { epoch: stored.epoch, granted_at: now }
            }
            None => Submitted::Stored,
        };
        self.lanes.insert(task.lane.clone());
        if let Some(idempotency) = &task.idempotency {
            let key = Key { task: task.id, body: idempotency.body, created_at: now };
            self.keys.insert((task.lane.tenant.clone(), idempotency.key.clone()), key);
        }
        self.tasks.insert(task.id, stored);
        answer
    }

    fn repeated(&self, task: &NewTask, offer: Option<&Claim>) -> Submitted {
        let stored = &self.tasks[&task.id];
        let batch = offer.and_then(|offer| self.grants.get(&(offer.session, offer.sequence)));
        let same_grant = batch.is_some_and(|batch| batch.contains(&(task.id, stored.epoch)));
        match stored.granted_at {
            Some(granted_at) if same_grant && stored.status == Status::Running => {
                Submitted::HandedOff { epoch: stored.epoch, granted_at }
            }
            _ => Submitted::Stored,
        }
    }

    fn known_key(&self, task: &NewTask, now: Timestamp) -> Option<Submitted> {
        let idempotency = task.idempotency.as_ref()?;
        let key = (task.lane.tenant.clone(), idempotency.key.clone());
        let known = self.keys.get(&key)?;
        if now >= known.created_at.plus(IDEMPOTENCY_KEY_TTL) {
            return None;
        }
        if known.body != idempotency.body {
            return Some(Submitted::KeyReused);
        }
        Some(Submitted::Replayed { id: known.task })
    }

    pub(super) fn get(&self, tenant: &TenantName, id: TaskId) -> Option<Task> {
        self.tasks.get(&id).filter(|task| task.lane.tenant == *tenant).map(|task| self.named(task))
    }

    pub(super) fn task_mut(&mut self, tenant: &TenantName, id: TaskId) -> Option<&mut Task> {
        self.tasks.get_mut(&id).filter(|task| task.lane.tenant == *tenant)
    }

    pub(super) fn list(&self, page: &ListTasks) -> TaskList {
        let newest_first = self.tasks.values().rev();
        let wanted = newest_first
            .filter(|task| task.lane.tenant == page.tenant)
            .filter(|task| page.before.is_none_or(|before| task.id < before));
        let (mut tasks, mut bytes) = (Vec::new(), 0);
        for task in wanted {
            bytes += task.bytes();
            let full = bytes > PAGE_BYTES && !tasks.is_empty();
            if full || tasks.len() == page.limit as usize {
                let next_before = tasks.last().map(|task: &Task| task.id);
                return TaskList { tasks, next_before };
            }
            tasks.push(self.named(task));
        }
        TaskList { tasks, next_before: None }
    }

    fn named(&self, task: &Task) -> Task {
        let name = task.session.and_then(|session| self.names.get(&session));
        Task { worker: name.cloned(), ..task.clone() }
    }

    pub(super) fn open_session(&mut self, session: OpenSession) {
        self.names.entry(session.id).or_insert_with(|| session.name.clone());
        self.sessions.entry(session.id).or_insert(Session { opened: session, newest: 0 });
    }

    pub(super) fn end_session(&mut self, id: SessionId) -> Hint {
        self.sessions.remove(&id);
        let mut hint = None;
        for task in self.tasks.values_mut().filter(|task| holds(task, id)) {
            task.status = move_on(task.status, Event::Release);
            task.session = None;
            hint = earliest(hint, task.run_at);
        }
        hint
    }

    pub(super) fn lose_all_leases(&mut self, now: Timestamp) {
        self.sessions.clear();
        for task in self.tasks.values_mut().filter(|task| task.status == Status::Running) {
            task.losses += 1;
            task.session = None;
            if task.losses < LOSSES {
                task.status = move_on(task.status, Event::Lose);
                continue;
            }
            task.status = move_on(task.status, Event::Abandon);
            task.finished_at = Some(now);
            let message = format!("the worker died {} times while it ran this task", task.losses);
            task.error = Some(Failure::new("WORKER_LOST", message));
        }
    }

    pub(super) fn exchange(&mut self, exchange: &Exchange, now: Timestamp) -> (Exchanged, Hint) {
        let mut hint = None;
        let mut finished = Vec::new();
        for item in &exchange.finishes {
            finished.push(self.finish(exchange.session, item, now));
            if let Some(task) = self.tasks.get(&item.task)
                && task.status == Status::Pending
            {
                hint = earliest(hint, task.run_at);
            }
        }
        let leases = exchange.claim.map_or_else(Vec::new, |claim| self.claim(&claim, now));
        let waiting = self.waiting(exchange.session);
        let next_due = waiting.into_iter().map(|task| task.run_at).min();
        (Exchanged { finished, leases, next_due }, hint)
    }

    fn finish(&mut self, session: SessionId, item: &Finish, now: Timestamp) -> Finished {
        let Some(task) = self.tasks.get_mut(&item.task) else { return Finished::Unknown };
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
        conclude(task, &item.outcome, now);
        Finished::Done
    }

    fn claim(&mut self, claim: &Claim, now: Timestamp) -> Vec<Lease> {
        if !self.sessions.contains_key(&claim.session) {
            return Vec::new();
        }
        if !self.admits(claim) {
            return self.granted_before(claim);
        }
        let due = self.waiting(claim.session).into_iter().filter(|task| task.run_at <= now);
        let mut order: Vec<_> =
            due.map(|task| (claim_order(task.run_at, task.priority), task.id)).collect();
        order.sort_unstable();
        order.truncate(claim.max);
        let (mut leases, mut bytes) = (Vec::new(), 0);
        for (_, id) in order {
            let task = self.tasks.get_mut(&id).expect("it waits");
            bytes += task.payload.len();
            if bytes > STORE_BATCH_BYTES && !leases.is_empty() {
                break;
            }
            grant(task, claim.session, now);
            leases.push(lease(task));
        }
        if let Some(session) = self.sessions.get_mut(&claim.session) {
            session.newest = claim.sequence;
        }
        if !leases.is_empty() {
            self.note_grants(claim, leases.iter().map(|lease| (lease.task, lease.epoch)).collect());
        }
        leases
    }

    fn granted_before(&self, claim: &Claim) -> Vec<Lease> {
        let batch = self.grants.get(&(claim.session, claim.sequence));
        let tasks = batch.into_iter().flatten().filter_map(|(id, epoch)| {
            self.tasks.get(id).filter(|task| task.epoch == *epoch && holds(task, claim.session))
        });
        tasks.map(lease).collect()
    }

    fn note_grants(&mut self, claim: &Claim, granted: Vec<(TaskId, u32)>) {
        self.grants.insert((claim.session, claim.sequence), granted);
        if let Some(session) = self.sessions.get_mut(&claim.session) {
            session.newest = claim.sequence;
        }
    }

    fn admits(&self, claim: &Claim) -> bool {
        let newest = self.sessions.get(&claim.session).map(|session| session.newest);
        let granted = self.grants.contains_key(&(claim.session, claim.sequence));
        newest.is_some_and(|newest| claim.sequence >= newest && !granted)
    }

    fn serves(&self, session: SessionId, lane: &Lane) -> bool {
        self.sessions.get(&session).is_some_and(|session| {
            let OpenSession { types, queues, .. } = &session.opened;
            types.contains(&lane.task_type) && (queues.is_empty() || queues.contains(&lane.queue))
        })
    }

    fn is_due(&self, lane: &Lane, now: Timestamp) -> bool {
        let waits = |task: &Task| task.status == Status::Pending && task.run_at <= now;
        self.tasks.values().any(|task| task.lane == *lane && waits(task))
    }

    fn waiting(&self, session: SessionId) -> Vec<&Task> {
        let pending = self.tasks.values().filter(|task| task.status == Status::Pending);
        pending.filter(|task| self.serves(session, &task.lane)).collect()
    }
}

fn conclude(task: &mut Task, outcome: &Outcome, now: Timestamp) {
    let failed = |task: &mut Task, error: &Failure| {
        task.charged += 1;
        task.error = Some(error.clone());
    };
    let event = match outcome {
        Outcome::Success { result } => {
            task.charged += 1;
            task.result = result.clone();
            task.error = None;
            Event::Succeed
        }
        Outcome::Fail { error } => {
            failed(task, error);
            Event::Fail
        }
        Outcome::Retry { error, entropy, after } => {
            failed(task, error);
            if task.charged > task.retries {
                Event::Fail
            } else {
                task.run_at = now.plus(task.back_off.wait_or(*after, task.charged, *entropy));
                Event::Retry
            }
        }
        Outcome::Release => Event::Release,
    };
    task.status = move_on(task.status, event);
    if task.status.is_terminal() {
        task.finished_at = Some(now);
    }
}

fn store(task: &NewTask) -> Task {
    Task {
        id: task.id,
        lane: task.lane.clone(),
        status: Status::Pending,
        priority: task.priority,
        run_at: task.run_at,
        created_at: task.created_at,
        granted_at: None,
        finished_at: None,
        run: 1,
        charged: 0,
        retries: task.retries,
        back_off: task.back_off,
        epoch: 0,
        losses: 0,
        timeout: task.timeout,
        session: None,
        worker: None,
        labels: task.labels.clone(),
        payload: Arc::clone(&task.payload),
        result: None,
        error: None,
    }
}

fn grant(task: &mut Task, session: SessionId, now: Timestamp) {
    task.status = move_on(task.status, Event::Grant);
    task.epoch += 1;
    task.session = Some(session);
    task.granted_at = Some(now);
}

fn lease(task: &Task) -> Lease {
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
    }
}

fn holds(task: &Task, session: SessionId) -> bool {
    task.status == Status::Running && task.session == Some(session)
}

fn move_on(from: Status, event: Event) -> Status {
    transition(from, event).expect("the model only asks for what can happen")
}

fn earliest(hint: Hint, due: Timestamp) -> Hint {
    Some(hint.map_or(due, |known| known.min(due)))
}
