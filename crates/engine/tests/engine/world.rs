//! An engine, one worker session and a store that counts, fails and holds on demand.

#![expect(clippy::unwrap_used, reason = "a world that cannot be made fails its test")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use duly_core::id::{SessionId, TaskId};
use duly_core::lease::{Finish, Lease, Outcome};
use duly_core::name::{Lane, TenantName, TypeName};
use duly_core::ports::clock::Clock;
use duly_core::ports::random::Random as _;
use duly_core::ports::store::{
    Beat, CancelTasks, Control, Controlled, DeadGroups, DeadLetters, DeadList, EditTask, Ending,
    Error, Exchange, Exchanged, Expiry, ExtendLeases, Extended, GroupDead, Hint, Leases, ListDead,
    ListSettings, ListTasks, LogPage, OpenSession, OpenedSession, Pulse, PurgeTasks, Put,
    PutSettings, ReadLogs, Reap, Reaped, ReplayTasks, Report, Reported, Reports, Result,
    RetryTasks, Rules, Sessions, SettingsLog, Snapshots, Submit, Submitted, Sweep, Swept, TaskList,
    Tasks, VersionedSettings, WorkerState,
};
use duly_core::ports::work_source::WorkSource;
use duly_core::submit::Draft;
use duly_core::task::{Attempt, Task};
use duly_core::time::Timestamp;
use duly_engine::Engine;
use duly_engine::command::submit::Accepted;
use duly_engine::engine::LocalWorker;
use duly_engine::random::OsRandom;
use duly_store::memory::MemoryStore;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use crate::nodes::Others;

pub(crate) const TTL: Duration = Duration::from_secs(10);
const CONFIG: duly_engine::Config = duly_engine::Config { session_ttl: TTL, is_scheduler: true };

/// Follows tokio's time, which tests pause.
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_900_000_000_000).plus(self.0.elapsed())
    }
}

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<Watched>,
    pub(crate) source: Arc<dyn WorkSource>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(true).await
    }

    pub(crate) async fn without_hints() -> Self {
        Self::with(false).await
    }

    /// One that starts with settings that cannot be read.
    pub(crate) async fn with_damaged_settings() -> Self {
        let store = Self::watching(true);
        store.set_damaged(true);
        Self::on(store).await
    }

    /// One whose store is shared with other nodes.
    pub(crate) async fn among_others() -> Self {
        let mut store = Self::watching(true);
        Arc::get_mut(&mut store).unwrap().others.exist = true;
        Self::on(store).await
    }

    async fn with(hints: bool) -> Self {
        Self::on(Self::watching(hints)).await
    }

    fn watching(hints: bool) -> Arc<Watched> {
        let clock = Arc::new(TokioClock(Instant::now()));
        Arc::new(Watched {
            store: MemoryStore::new(clock, Rules::default()),
            hints,
            submits: AtomicUsize::new(0),
            exchanges: AtomicUsize::new(0),
            system: Mutex::default(),
            lost_steps: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            unreadable: AtomicBool::new(false),
            failures: AtomicUsize::new(0),
            failing_submit: AtomicUsize::new(0),
            poison: Mutex::new(None),
            releases_fail: AtomicBool::new(false),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            held: Notify::new(),
            cancelled_at_place: Mutex::default(),
            damaged: AtomicBool::new(false),
            others: Others::default(),
            opened: Mutex::default(),
        })
    }

    async fn on(store: Arc<Watched>) -> Self {
        let random = Arc::new(OsRandom::new());
        assert_ne!(random.next(), random.next());
        let engine = Engine::start(store.clone(), random, CONFIG);
        let types = vec![TypeName::new("echo").unwrap()];
        let worker = LocalWorker { name: "test".to_owned(), types, queues: vec![] };
        let source = engine.open_worker(worker).await.unwrap();
        Self { engine, store, source }
    }

    pub(crate) async fn submit(&self, draft: Draft) -> Accepted {
        let spec = draft.check().unwrap();
        let tenant = TenantName::default_tenant();
        let mut answers = self.engine.submit(&tenant, vec![spec]).await.unwrap();
        answers.remove(0).unwrap()
    }

    pub(crate) async fn get(&self, id: TaskId) -> Task {
        self.engine.get(&TenantName::default_tenant(), id).await.unwrap().unwrap()
    }

    pub(crate) async fn wait(&self, id: TaskId, patience: Duration) -> Task {
        let tenant = TenantName::default_tenant();
        self.engine.wait(&tenant, id, patience).await.unwrap().unwrap()
    }

    pub(crate) async fn now(&self) -> Timestamp {
        self.store.now().await.unwrap()
    }
}

/// Lets paused time pass.
pub(crate) async fn pass(time: Duration) {
    let never = std::future::pending::<()>();
    assert!(tokio::time::timeout(time, never).await.is_err());
}

pub(crate) fn draft(task_type: &str) -> Draft {
    Draft { task_type: Some(task_type.to_owned()), ..Draft::default() }
}

pub(crate) fn success() -> Outcome {
    Outcome::Success { result: None }
}

pub(crate) fn finish(lease: &Lease, outcome: Outcome) -> Finish {
    Finish::new(lease.task, lease.epoch, outcome)
}

/// The memory store under observation.
pub(crate) struct Watched {
    pub(crate) store: MemoryStore,
    hints: bool,
    submits: AtomicUsize,
    /// Of workers, not of the engine for its own tasks.
    exchanges: AtomicUsize,
    system: Mutex<Option<SessionId>>,
    /// Answers to steps of orders that will be lost.
    pub(crate) lost_steps: AtomicUsize,
    reads: AtomicUsize,
    unreadable: AtomicBool,
    failures: AtomicUsize,
    failing_submit: AtomicUsize,
    poison: Mutex<Option<TaskId>>,
    releases_fail: AtomicBool,
    gate: Semaphore,
    held: Notify,
    pub(crate) cancelled_at_place: Mutex<Option<TaskId>>,
    /// Whether the newest settings cannot be read.
    damaged: AtomicBool,
    pub(crate) others: Others,
    /// The sessions by the names of their workers.
    opened: Mutex<Vec<(String, SessionId)>>,
}

impl Watched {
    pub(crate) fn submits(&self) -> usize {
        self.submits.load(Ordering::SeqCst)
    }

    pub(crate) fn exchanges(&self) -> usize {
        self.exchanges.load(Ordering::SeqCst)
    }

    /// How often the sessions were read.
    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    /// Whether the sessions can be read.
    pub(crate) fn set_readable(&self, readable: bool) {
        self.unreadable.store(!readable, Ordering::SeqCst);
    }

    /// Whether the newest settings are damaged; it is over as soon as others are put.
    pub(crate) fn set_damaged(&self, damaged: bool) {
        self.damaged.store(damaged, Ordering::SeqCst);
    }

    /// The next calls answer that the store is away.
    pub(crate) fn fail_next(&self, calls: usize) {
        self.failures.store(calls, Ordering::SeqCst);
    }

    /// This call of `submit` fails, counted from the first.
    pub(crate) fn fail_submit(&self, number: usize) {
        self.failing_submit.store(number, Ordering::SeqCst);
    }

    /// Every exchange with an outcome other than a release of this task fails for good.
    pub(crate) fn poison(&self, task: TaskId) {
        *self.poison.lock().unwrap() = Some(task);
    }

    /// A release of the poisoned task fails as well.
    pub(crate) fn poison_releases(&self) {
        self.releases_fail.store(true, Ordering::SeqCst);
    }

    /// Somebody cancels this task just before its place is read.
    pub(crate) fn cancel_at_place(&self, task: TaskId) {
        *self.cancelled_at_place.lock().unwrap() = Some(task);
    }

    /// The newest session of a worker of this name.
    pub(crate) fn last_opened(&self, name: &str) -> SessionId {
        let opened = self.opened.lock().unwrap();
        opened.iter().rfind(|(worker, _)| worker == name).unwrap().1
    }

    /// Answers of submits and changes of the settings are held back from now on.
    pub(crate) fn hold(&self) {
        self.gate.forget_permits(usize::MAX);
    }

    /// Waits until an answer is held back.
    pub(crate) async fn held(&self) {
        self.held.notified().await;
    }

    pub(crate) fn go_on(&self) {
        self.gate.add_permits(1000);
    }

    fn fail(&self) -> Result<()> {
        let left = |left: usize| left.checked_sub(1);
        match self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left) {
            Ok(_) => Err(Error::Unavailable { reason: "told to".to_owned() }),
            Err(_) => Ok(()),
        }
    }
}

#[async_trait]
impl Tasks for Watched {
    async fn submit(&self, batch: Submit) -> Result<Vec<Submitted>> {
        let number = self.submits.fetch_add(1, Ordering::SeqCst) + 1;
        if number == self.failing_submit.load(Ordering::SeqCst) {
            self.fail_next(1);
        }
        self.fail()?;
        if batch.tasks.iter().any(|task| task.lane.task_type.as_str() == "blocked") {
            return Err(Error::Blocked { reason: "told to".to_owned() });
        }
        let answers = self.store.submit(batch).await;
        self.held.notify_one();
        self.gate.acquire().await.unwrap().forget();
        answers
    }

    async fn get(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Task>> {
        self.store.get(tenant, id).await
    }

    async fn list(&self, page: ListTasks) -> Result<TaskList> {
        self.store.list(page).await
    }

    async fn attempts(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Vec<Attempt>>> {
        self.store.attempts(tenant, id).await
    }
}

#[async_trait]
impl Sessions for Watched {
    async fn open_session(&self, session: OpenSession) -> Result<()> {
        if session.name == "system" {
            *self.system.lock().unwrap() = Some(session.id);
        }
        self.opened.lock().unwrap().push((session.name.clone(), session.id));
        self.store.open_session(session).await
    }

    async fn beat(&self, beat: Beat) -> Result<bool> {
        self.store.beat(beat).await
    }

    async fn sessions(&self) -> Result<Vec<OpenedSession>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        if self.unreadable.load(Ordering::SeqCst) {
            return Err(Error::Unavailable { reason: "told to".to_owned() });
        }
        self.store.sessions().await
    }

    async fn workers(&self) -> Result<Vec<WorkerState>> {
        self.store.workers().await
    }

    async fn drain(&self, session: SessionId, draining: bool) -> Result<bool> {
        self.store.drain(session, draining).await
    }

    async fn draining(&self, sessions: Vec<SessionId>) -> Result<Vec<SessionId>> {
        self.store.draining(sessions).await
    }

    async fn serving(&self, lane: &Lane) -> Result<Vec<SessionId>> {
        self.store.serving(lane).await
    }

    async fn end_session(&self, session: SessionId, ending: Ending) -> Result<Vec<TaskId>> {
        self.store.end_session(session, ending).await
    }

    async fn keep_alive(&self, sessions: Vec<SessionId>) -> Result<Vec<SessionId>> {
        if self.others.refused.load(Ordering::SeqCst) {
            return Err(Error::Unavailable { reason: "told to".to_owned() });
        }
        let mut ended = self.store.keep_alive(sessions).await?;
        ended.append(&mut self.others.ended.lock().unwrap());
        Ok(ended)
    }

    async fn reap(&self, reap: Reap) -> Result<Reaped> {
        self.store.reap(reap).await
    }
}

#[async_trait]
impl Leases for Watched {
    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged> {
        if *self.system.lock().unwrap() != Some(exchange.session) {
            self.exchanges.fetch_add(1, Ordering::SeqCst);
        }
        self.fail()?;
        let poison = *self.poison.lock().unwrap();
        let any = self.releases_fail.load(Ordering::SeqCst);
        let bad = |finish: &Finish| {
            Some(finish.task) == poison && (any || finish.outcome != Outcome::Release)
        };
        if exchange.finishes.iter().any(bad) {
            let id = poison.unwrap().to_string();
            return Err(Error::Corrupt { table: "task", column: "told to", id });
        }
        self.store.exchange(exchange).await
    }

    async fn extend(&self, order: ExtendLeases) -> Result<Vec<Extended>> {
        self.store.extend(order).await
    }
}

#[async_trait]
impl Reports for Watched {
    async fn report(&self, report: Report) -> Result<Vec<Reported>> {
        self.fail()?;
        self.store.report(report).await
    }

    async fn logs(&self, read: ReadLogs) -> Result<Option<LogPage>> {
        self.store.logs(read).await
    }
}

#[async_trait]
impl Control for Watched {
    async fn cancel(&self, order: CancelTasks) -> Result<Vec<Controlled>> {
        self.store.cancel(order).await
    }

    async fn replay(&self, order: ReplayTasks) -> Result<Vec<Controlled>> {
        self.store.replay(order).await
    }

    async fn retry(&self, order: RetryTasks) -> Result<Vec<Controlled>> {
        self.store.retry(order).await
    }

    async fn edit(&self, order: EditTask) -> Result<Controlled> {
        self.store.edit(order).await
    }
}

#[async_trait]
impl DeadLetters for Watched {
    async fn dead_letters(&self, page: ListDead) -> Result<DeadList> {
        self.store.dead_letters(page).await
    }

    async fn dead_groups(&self, which: GroupDead) -> Result<DeadGroups> {
        self.store.dead_groups(which).await
    }

    async fn purge(&self, order: PurgeTasks) -> Result<Vec<Controlled>> {
        self.store.purge(order).await
    }
}

#[async_trait]
impl SettingsLog for Watched {
    async fn settings(&self) -> Result<VersionedSettings> {
        if self.damaged.load(Ordering::SeqCst) {
            return Err(Error::Corrupt { table: "settings", column: "body", id: "1".to_owned() });
        }
        self.store.settings().await
    }

    async fn put_settings(&self, put: PutSettings) -> Result<Put> {
        let answer = self.store.put_settings(put).await;
        self.set_damaged(false);
        self.held.notify_one();
        self.gate.acquire().await.unwrap().forget();
        answer
    }

    async fn settings_history(&self, page: ListSettings) -> Result<Vec<VersionedSettings>> {
        self.store.settings_history(page).await
    }
}

#[async_trait]
impl Expiry for Watched {
    async fn sweep(&self, sweep: Sweep) -> Result<Swept> {
        self.others.sweeps.fetch_add(1, Ordering::SeqCst);
        self.store.sweep(sweep).await
    }

    async fn forget_sessions(&self, before: Timestamp) -> Result<u32> {
        self.store.forget_sessions(before).await
    }
}

impl Snapshots for Watched {}

#[async_trait]
impl Pulse for Watched {
    async fn now(&self) -> Result<Timestamp> {
        self.store.now().await
    }

    async fn check(&self) -> Result<()> {
        self.store.check().await
    }

    async fn hint(&self) -> Hint {
        let due = self.store.hint().await;
        if self.hints { due } else { std::future::pending().await }
    }
}
