//! What the cases share: a store, its clock, and short ways to say what they do with them.

use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use duly_core::back_off::BackOff;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Finished, Lease, Outcome};
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::ports::clock::Clock as _;
use duly_core::ports::store::{
    Claim, Ending, Exchange, Exchanged, Heartbeat, Home, OpenSession, Reap, Store, Submit,
    Submitted,
};
use duly_core::task::{Failure, NewTask, Priority, Task};
use duly_core::time::Timestamp;

use crate::clock::ManualClock;

/// What a store brings to the suite: an empty instance on a clock that can be moved.
#[async_trait]
pub trait Backend: Send + Sync {
    /// The store.
    fn store(&self) -> Arc<dyn Store>;

    /// The clock the store goes by.
    fn clock(&self) -> &ManualClock;

    /// Ends the process that has the store open, without warning, and opens it again.
    async fn crash(&mut self);

    /// Whether the store lives on while the process dies that has it open, since others share it.
    /// Such a store forgets nothing at a crash: deadlines and beats go on, for another process could
    /// have been told all the while.
    fn outlives_nodes(&self) -> bool {
        false
    }
}

/// A backend and counters for ids.
pub struct Harness {
    backend: Box<dyn Backend>,
    ordinal: AtomicU32,
    sequence: AtomicU64,
}

/// Where the clocks of the suite start.
const START: i64 = 1_900_000_000_000;

impl Harness {
    /// Around a fresh backend.
    pub fn new(backend: Box<dyn Backend>) -> Self {
        Self { backend, ordinal: AtomicU32::new(0), sequence: AtomicU64::new(0) }
    }

    /// A clock for a backend.
    pub fn clock() -> ManualClock {
        ManualClock::new(Timestamp::from_millis(START))
    }

    pub(super) fn store(&self) -> Arc<dyn Store> {
        self.backend.store()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.backend.clock().now()
    }

    pub(super) fn advance(&self, by: Duration) {
        self.backend.clock().advance(by);
    }

    pub(super) async fn crash(&mut self) {
        self.backend.crash().await;
    }

    pub(super) fn outlives_nodes(&self) -> bool {
        self.backend.outlives_nodes()
    }

    /// A task of this type that is due now.
    pub(super) fn task(&self, task_type: &str) -> NewTask {
        let lane = Lane {
            tenant: TenantName::default_tenant(),
            queue: QueueName::default_queue(),
            task_type: TypeName::new(task_type).unwrap(),
        };
        let ordinal = self.ordinal.fetch_add(1, Ordering::Relaxed);
        NewTask {
            id: TaskId::mint(self.now(), ordinal, 7),
            lane,
            priority: Priority::new(5).unwrap(),
            run_at: self.now(),
            delay: None,
            retries: 3,
            back_off: BackOff::default(),
            timeout: None,
            labels: std::collections::BTreeMap::new(),
            payload: Arc::from("{}"),
            idempotency: None,
            links: None,
        }
    }

    /// The same, due later.
    pub(super) fn task_in(&self, task_type: &str, delay: Duration) -> NewTask {
        NewTask { run_at: self.now().plus(delay), ..self.task(task_type) }
    }

    /// The same, with another priority.
    pub(super) fn task_at(&self, task_type: &str, priority: u8) -> NewTask {
        NewTask { priority: Priority::new(priority).unwrap(), ..self.task(task_type) }
    }

    pub(super) async fn submit(&self, tasks: &[NewTask]) -> Vec<Submitted> {
        let batch = Submit { tasks: tasks.to_vec(), offer: None };
        self.store().submit(batch).await.unwrap()
    }

    /// The answer to a task that is stored now.
    pub(super) fn stored(&self) -> Submitted {
        Submitted::Stored { at: self.now() }
    }

    /// Stores one task that waits.
    pub(super) async fn submit_one(&self, task: NewTask) -> TaskId {
        assert_eq!(self.submit(std::slice::from_ref(&task)).await, [self.stored()]);
        task.id
    }

    pub(super) async fn get(&self, id: TaskId) -> Task {
        let task = self.store().get(&TenantName::default_tenant(), id).await.unwrap();
        task.expect("the task is stored")
    }

    /// Opens a session that serves these types in all queues.
    pub(super) async fn session(&self, types: &[&str]) -> SessionId {
        self.session_in(types, &[]).await
    }

    /// Opens a session that serves these types in these queues.
    pub(super) async fn session_in(&self, types: &[&str], queues: &[&str]) -> SessionId {
        let queues = queues.iter().map(|name| QueueName::new(name).unwrap()).collect();
        self.open(OpenSession { queues, ..self.new_session(types) }).await
    }

    /// Opens a remote session that serves these types in all queues.
    pub(super) async fn remote(&self, types: &[&str]) -> SessionId {
        self.open(OpenSession { home: Home::Remote, ..self.new_session(types) }).await
    }

    pub(super) fn new_session(&self, types: &[&str]) -> OpenSession {
        let ordinal = self.ordinal.fetch_add(1, Ordering::Relaxed);
        OpenSession {
            id: SessionId::mint(self.now(), ordinal.into()),
            name: format!("worker-{ordinal}"),
            tenant: None,
            types: types.iter().map(|name| TypeName::new(name).unwrap()).collect(),
            queues: Vec::new(),
            home: Home::Local,
            owner: None,
        }
    }

    pub(super) async fn open(&self, session: OpenSession) -> SessionId {
        let id = session.id;
        self.store().open_session(session).await.unwrap();
        id
    }

    /// A sign of life; whether the session is open.
    pub(super) async fn beat(
        &self,
        session: SessionId,
        received: &[u64],
        unstarted: &[TaskId],
    ) -> bool {
        let (received, unstarted) = (received.to_vec(), unstarted.to_vec());
        self.store().beat(Heartbeat { session, received, unstarted }).await.unwrap()
    }

    /// The session ends in order.
    pub(super) async fn leave(&self, session: SessionId) {
        self.store().end_session(session, Ending::Closed).await.unwrap();
    }

    /// The last beat of a remote session, if it is open.
    pub(super) async fn last_beat(&self, session: SessionId) -> Option<u64> {
        let sessions = self.store().sessions().await.unwrap();
        sessions.iter().find(|it| it.opened.id == session).map(|it| it.beat)
    }

    /// The session's process is seen to have died.
    pub(super) async fn die(&self, session: SessionId) {
        let beat = self.last_beat(session).await.expect("the session is open");
        self.store().end_session(session, Ending::Died { beat }).await.unwrap();
    }

    /// Makes the only due task lose its worker so many times.
    pub(super) async fn lose(&self, task_type: &str, times: u32) {
        for _ in 0..times {
            let session = self.remote(&[task_type]).await;
            self.claim_one(session).await;
            self.die(session).await;
        }
    }

    /// Takes back what is overdue, and what was not acknowledged for a minute.
    pub(super) async fn reap(&self) {
        let minute_ago = Timestamp::from_millis(self.now().millis() - 60_000);
        let reap = Reap { unacknowledged_before: minute_ago, entropy: u64::MAX };
        self.store().reap(reap).await.unwrap();
    }

    /// A claim with the next sequence.
    pub(super) fn next_claim(&self, session: SessionId, max: usize) -> Claim {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        Claim::new(session, sequence, max)
    }

    pub(super) async fn ask(&self, claim: impl Borrow<Claim>) -> Exchanged {
        let claim = claim.borrow().clone();
        let exchange = Exchange { session: claim.session, finishes: vec![], claim: Some(claim) };
        let answer = self.store().exchange(exchange).await.unwrap();
        if let Some(parents) = &answer.parents {
            let children = answer.leases.iter().filter(|lease| lease.has_parents);
            let children = children.map(|lease| lease.task).collect();
            assert_eq!(*parents, self.store().parents(children).await.unwrap(), "read along");
        }
        answer
    }

    pub(super) async fn claim(&self, session: SessionId, max: usize) -> Vec<Lease> {
        self.ask(self.next_claim(session, max)).await.leases
    }

    /// Claims the only lease there is.
    pub(super) async fn claim_one(&self, session: SessionId) -> Lease {
        let mut leases = self.claim(session, 10).await;
        assert_eq!(leases.len(), 1, "exactly one task is due");
        leases.remove(0)
    }

    pub(super) async fn finish(&self, session: SessionId, finishes: Vec<Finish>) -> Vec<Finished> {
        let exchange = Exchange { session, finishes, claim: None };
        self.store().exchange(exchange).await.unwrap().finished
    }

    pub(super) async fn finish_one(
        &self,
        session: SessionId,
        lease: &Lease,
        outcome: Outcome,
    ) -> Finished {
        let finish = Finish::new(lease.task, lease.epoch, outcome);
        self.finish(session, vec![finish]).await[0]
    }
}

pub(super) fn success() -> Outcome {
    Outcome::Success { result: Some(Arc::from(r#"{"ok":true}"#)) }
}

/// A failed attempt whose back-off is as long as the policy allows.
pub(super) fn retry() -> Outcome {
    retry_after(None)
}

/// A failed attempt whose handler asks for a wait of its own.
pub(super) fn retry_after(after: Option<Duration>) -> Outcome {
    Outcome::Retry { error: Failure::new("BROKEN", "it broke"), entropy: u64::MAX, after }
}

pub(super) fn fail() -> Outcome {
    Outcome::Fail { error: Failure::new("HOPELESS", "it never works") }
}

pub(super) fn ids(leases: &[Lease]) -> Vec<TaskId> {
    leases.iter().map(|lease| lease.task).collect()
}
