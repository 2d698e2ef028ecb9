//! The reference model: the rules of the port in the simplest code that keeps them. It shares
//! nothing with the other stores, so that a test that compares them means something.

mod audit;
mod bulk;
mod cascade;
mod control;
mod dead_letters;
mod keys;
mod leases;
mod list;
mod model;
mod nodes;
mod outbox;
mod queues;
mod reports;
mod retention;
mod schedules;
mod sessions;
mod settings;
mod slots;
mod task_state;
mod tenants;
mod workflows;

use std::sync::Arc;

use async_trait::async_trait;
use duly_core::audit::Author;
use duly_core::id::{NodeId, SessionId, TaskId};
use duly_core::limits::STORE_BATCH;
use duly_core::name::{Lane, TenantName};
use duly_core::ports::clock::Clock;
use duly_core::ports::store::{
    CancelTasks, Control, Controlled, DeadGroups, DeadLetters, DeadList, EditTask, Ending, Error,
    Exchange, Exchanged, ExtendLeases, Extended, GroupDead, Heartbeat, Hint, JoinNode, Leases,
    ListDead, ListTasks, OpenSession, OpenedSession, Reap, Reaped, ReplayTasks, Result, RetryTasks,
    Rules, Sessions, Snapshots, StoreHealth, Submit, Submitted, TaskList, Tasks, WorkerState,
};
use duly_core::task::{Attempt, Task};
use duly_core::time::Timestamp;
use parking_lot::Mutex;

use self::model::Model;
use crate::audited::{self, Audited as _};
use crate::hints::Hints;

/// A store that lives as long as its process; cheap to clone.
#[derive(Clone)]
pub struct MemoryStore {
    model: Arc<Mutex<Model>>,
    clock: Arc<dyn Clock>,
    hints: Arc<Hints>,
    node: NodeId,
    /// How this process has introduced itself, and when.
    joined: Arc<Mutex<Option<(JoinNode, Timestamp)>>>,
    /// For whom it makes changes, if they are to be audited.
    author: Option<Author>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(clock: Arc<dyn Clock>, rules: Rules) -> Self {
        let model = Arc::new(Mutex::new(Model::new(rules)));
        let (hints, joined) = Default::default();
        Self { model, clock, hints, node: NodeId::ONLY, joined, author: None }
    }

    /// The store of a process that takes itself for one of several nodes.
    #[must_use]
    pub fn as_node(self, node: NodeId) -> Self {
        Self { node, ..self }
    }

    /// What a new process would find if this one died now.
    #[must_use]
    pub fn after_crash(&self) -> Self {
        self.model.lock().crash(self.clock.now());
        let (model, clock) = (Arc::clone(&self.model), Arc::clone(&self.clock));
        let (hints, joined) = Default::default();
        Self { model, clock, hints, node: self.node, joined, author: None }
    }

    /// Tells that something is due, by this command or since a task was released with it.
    fn hint_at(&self, due: Option<Timestamp>) {
        let released = self.model.lock().released.take();
        if let Some(due) = due.into_iter().chain(released).min() {
            self.hints.send(Hint::anywhere(due));
        }
    }
}

#[async_trait]
impl Tasks for MemoryStore {
    async fn submit(&self, batch: Submit) -> Result<Vec<Submitted>> {
        if batch.tasks.len() > STORE_BATCH {
            return Err(Error::TooLarge { what: "a batch of tasks", limit: STORE_BATCH });
        }
        let (answers, hint) =
            self.order(|| batch.audited(), |model, now| model.submit(&batch, now));
        self.hint_at(hint);
        Ok(answers)
    }

    async fn get(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Task>> {
        Ok(self.model.lock().get(tenant, id))
    }

    async fn list(&self, page: ListTasks) -> Result<TaskList> {
        Ok(self.model.lock().list(&page))
    }

    async fn attempts(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Vec<Attempt>>> {
        Ok(self.model.lock().attempts(tenant, id))
    }
}

#[async_trait]
impl Sessions for MemoryStore {
    async fn open_session(&self, session: OpenSession) -> Result<()> {
        self.model.lock().open_session(session, self.clock.now());
        Ok(())
    }

    async fn beat(&self, beat: Heartbeat) -> Result<bool> {
        Ok(self.model.lock().beat(beat, self.clock.now()))
    }

    async fn keep_alive(&self, _: Vec<SessionId>) -> Result<Vec<SessionId>> {
        Ok(Vec::new())
    }

    async fn sessions(&self) -> Result<Vec<OpenedSession>> {
        Ok(self.model.lock().remote_sessions())
    }

    async fn workers(&self) -> Result<Vec<WorkerState>> {
        Ok(self.model.lock().workers(self.node, self.clock.now()))
    }

    async fn drain(&self, session: SessionId, draining: bool) -> Result<bool> {
        let audited = || audited::drain(session, draining);
        Ok(self.order(audited, |model, _| model.drain(session, draining)))
    }

    async fn draining(&self, sessions: Vec<SessionId>) -> Result<Vec<SessionId>> {
        Ok(self.model.lock().draining(&sessions))
    }

    async fn serving(&self, lane: &Lane) -> Result<Vec<SessionId>> {
        let remote = self.model.lock().remote_sessions();
        let serving = remote.into_iter().filter(|it| it.opened.serves(lane));
        Ok(serving.map(|it| it.opened.id).collect())
    }

    async fn end_session(&self, session: SessionId, ending: Ending) -> Result<Vec<TaskId>> {
        let (tasks, hint) = self.model.lock().end_session(session, ending, self.clock.now());
        self.hint_at(hint);
        Ok(tasks)
    }

    async fn reap(&self, reap: Reap) -> Result<Reaped> {
        let (reaped, hint) = self.model.lock().reap(&reap, self.clock.now());
        self.hint_at(hint);
        Ok(reaped)
    }
}

#[async_trait]
impl Leases for MemoryStore {
    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged> {
        let claimed = exchange.claim.as_ref().map_or(0, |claim| claim.max);
        if exchange.finishes.len() > STORE_BATCH || claimed > STORE_BATCH {
            return Err(Error::TooLarge { what: "a batch of leases", limit: STORE_BATCH });
        }
        let (answer, hint) = self.model.lock().exchange(&exchange, self.clock.now());
        self.hint_at(hint);
        Ok(answer)
    }

    async fn extend(&self, order: ExtendLeases) -> Result<Vec<Extended>> {
        Ok(self.model.lock().extend(&order, self.clock.now()))
    }
}

#[async_trait]
impl Control for MemoryStore {
    async fn cancel(&self, order: CancelTasks) -> Result<Vec<Controlled>> {
        let answers = self.order(|| order.audited(), |model, now| model.cancel(&order, now));
        self.hint_at(None);
        Ok(answers)
    }

    async fn replay(&self, order: ReplayTasks) -> Result<Vec<Controlled>> {
        let now = self.clock.now();
        let answers = self.order(|| order.audited(), |model, now| model.replay(&order, now));
        self.hint_at(answers.contains(&Controlled::Done).then_some(now));
        Ok(answers)
    }

    async fn retry(&self, order: RetryTasks) -> Result<Vec<Controlled>> {
        let now = self.clock.now();
        let answers = self.order(|| order.audited(), |model, now| model.retry(&order, now));
        self.hint_at(answers.contains(&Controlled::Done).then_some(now));
        Ok(answers)
    }

    async fn edit(&self, order: EditTask) -> Result<Controlled> {
        let now = self.clock.now();
        let answer = self.order(|| order.audited(), |model, now| model.edit(&order, now));
        let due = order.change.start.map(|start| start.resolve(now));
        self.hint_at(due.filter(|_| answer == Controlled::Done));
        Ok(answer)
    }
}

#[async_trait]
impl DeadLetters for MemoryStore {
    async fn dead_letters(&self, page: ListDead) -> Result<DeadList> {
        Ok(self.model.lock().dead_letters(&page))
    }

    async fn dead_groups(&self, which: GroupDead) -> Result<DeadGroups> {
        Ok(self.model.lock().dead_groups(&which))
    }
}

impl Snapshots for MemoryStore {}

#[async_trait]
impl StoreHealth for MemoryStore {
    async fn now(&self) -> Result<Timestamp> {
        Ok(self.clock.now())
    }

    async fn check(&self) -> Result<()> {
        Ok(())
    }

    async fn hint(&self) -> Hint {
        self.hints.next().await
    }
}
