//! SQLite as the truth: one file, one process, nothing else to install.

mod audit;
mod backup;
mod bulk;
mod checkpoint;
mod dead_letters;
mod error;
mod examine;
mod filter;
mod index;
mod keys;
pub mod limit;
mod links;
mod list;
mod lock;
mod migrate;
mod nodes;
mod open;
mod outbox;
mod page;
#[cfg(feature = "planted-bugs")]
mod planted;
mod queues;
mod reader;
mod reports;
mod restore;
mod retention;
mod row;
mod schedules;
mod serving;
mod settings;
mod task_state;
mod tenants;
mod verb;
mod weight;
mod workflows;
mod writer;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use async_trait::async_trait;
use duly_core::audit::Author;
use duly_core::id::{SessionId, TaskId};
use duly_core::limits::STORE_BATCH;
use duly_core::name::{Lane, TenantName};
use duly_core::ports::clock::Clock;
use duly_core::ports::store::{
    CancelTasks, Control, Controlled, CopyProgress, DeadGroups, DeadLetters, DeadList, EditTask,
    Ending, Error, Exchange, Exchanged, ExtendLeases, Extended, GroupDead, Heartbeat, Hint,
    JoinNode, Leases, ListDead, ListTasks, OpenSession, OpenedSession, Reap, Reaped, ReplayTasks,
    Result, RetryTasks, Rules, Sessions, Snapshot, Snapshots, StoreHealth, Submit, Submitted,
    TaskList, Tasks, WorkerState,
};
use duly_core::task::{Attempt, Task};
use duly_core::time::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

pub use self::examine::{Damaged, examine};
pub use self::lock::holder;
pub use self::open::OpenError;
use self::reader::Readers;
pub use self::restore::{RestoreError, Restored, back_up, restore};
use self::verb::probe::Probe;
use self::verb::reclaim::Reclaim;
use self::verb::session::{Drain, EndSession, ListSessions, ListWorkers};
use self::verb::{Call, Job, Verb};
use self::writer::{Command, Committer, Health, Writer};
use crate::hints::Hints;
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;

/// The version of SQLite that is built in.
pub fn version() -> &'static str {
    rusqlite::version()
}

/// The embedded store; cheap to clone.
#[derive(Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
    /// For whom it makes changes, if they are to be audited.
    author: Option<Author>,
}

impl Deref for SqliteStore {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// What all handles of a store have in common.
pub struct Shared {
    path: PathBuf,
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
    readers: Arc<Readers>,
    clock: Arc<dyn Clock>,
    hints: Arc<Hints>,
    events_written: Arc<Notify>,
    health: Health,
    log: Arc<checkpoint::Log>,
    reclaimed: usize,
    copying: backup::Copying,
    /// How this process has introduced itself, and when.
    joined: Mutex<Option<(JoinNode, Timestamp)>>,
    #[cfg(feature = "planted-bugs")]
    planted: planted::Planted,
    _lock: lock::ProcessLock,
}

impl SqliteStore {
    /// Opens the file, makes it if there is none, and takes back the leases that a process which
    /// had it open before has left behind.
    pub fn open(
        path: &Path,
        clock: Arc<dyn Clock>,
        rules: Rules,
    ) -> std::result::Result<Self, OpenError> {
        open::make_directory(path)?;
        let lock = lock::ProcessLock::acquire(path)?;
        backup::remove_leftover(path);
        let mut connection = open::writer(path)?;
        let broken = |error: rusqlite::Error| OpenError::database(path, error);
        let checkpointer = checkpoint::Checkpointer::new(&mut connection, path.to_owned());
        let checkpointer = checkpointer.map_err(broken)?;
        let log = Arc::clone(checkpointer.log());
        let hints = Arc::new(Hints::default());
        let events_written = Arc::new(Notify::new());
        // Why a file cannot be opened is for the caller to say, not for the log.
        let health = Arc::new(Mutex::new(Some("it is being opened".to_owned())));
        #[cfg(feature = "planted-bugs")]
        let planted = planted::Planted::default();
        let committer = Committer {
            index: index::Index::opened_at(clock.now()),
            stale: true,
            clock: Arc::clone(&clock),
            rules,
            hints: Arc::clone(&hints),
            events_written: Arc::clone(&events_written),
            health: Arc::clone(&health),
            checkpointer,
            #[cfg(feature = "planted-bugs")]
            planted: Arc::clone(&planted),
        };
        let mut writer = Writer { connection, committer };
        let (call, mut reclaimed) = call(Reclaim, None);
        writer.committer.work(&writer.connection, vec![call]);
        let reclaimed = reclaimed.try_recv().expect("the writer answers every call");
        let reclaimed =
            reclaimed.map_err(|error| OpenError::first_use(path, &writer.connection, error))?;
        let (commands, inbox) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("duly-sqlite".to_owned())
            .spawn(move || writer.run(&inbox))
            .map_err(|error| OpenError::database(path, error))?;
        let shared = Shared {
            path: path.to_owned(),
            commands: Some(commands),
            thread: Some(thread),
            readers: Arc::new(Readers::new(path.to_owned())),
            clock,
            hints,
            events_written,
            health,
            log,
            reclaimed,
            copying: backup::Copying::default(),
            joined: Mutex::default(),
            #[cfg(feature = "planted-bugs")]
            planted,
            _lock: lock,
        };
        Ok(Self { shared: Arc::new(shared), author: None })
    }

    /// How many leases of an earlier process were taken back on opening.
    pub fn reclaimed(&self) -> usize {
        self.reclaimed
    }

    /// Bytes written to the log since it was opened.
    pub fn log_bytes(&self) -> u64 {
        self.log.bytes()
    }

    /// Switches on a bug for the tests to find; the first one counts.
    #[cfg(feature = "planted-bugs")]
    #[must_use]
    pub fn with_bug(self, bug: PlantedBug) -> Self {
        self.planted.get_or_init(|| bug);
        self
    }

    /// Runs a verb in the writer. Once sent, it is carried out even if the caller goes away.
    async fn ask<V: Verb>(&self, verb: V) -> Result<V::Answer> {
        let (call, answer) = call(verb, self.author.clone());
        self.send(Command::Run(call))?;
        answer.await.map_err(|_| gone())?
    }
}

impl Shared {
    fn send(&self, command: Command) -> Result<()> {
        let commands = self.commands.as_ref().ok_or_else(gone)?;
        commands.send(command).map_err(|_| gone())
    }
}

impl Drop for Shared {
    /// Waits for the writer, so that the file is whole and unlocked when this returns.
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

type Answer<V> = oneshot::Receiver<Result<<V as Verb>::Answer>>;

fn gone() -> Error {
    Error::Unavailable { reason: "the writer has stopped".to_owned() }
}

fn call<V: Verb>(verb: V, author: Option<Author>) -> (Box<dyn Job>, Answer<V>) {
    let (caller, answer) = oneshot::channel();
    (Box::new(Call { verb, author, answer: None, caller }), answer)
}

#[async_trait]
impl Tasks for SqliteStore {
    async fn submit(&self, batch: Submit) -> Result<Vec<Submitted>> {
        if batch.tasks.len() > STORE_BATCH {
            return Err(Error::TooLarge { what: "a batch of tasks", limit: STORE_BATCH });
        }
        #[cfg(feature = "planted-bugs")]
        if self.planted.get() == Some(&PlantedBug::AcknowledgeBeforeCommit) {
            let (call, _) = call(Submit { offer: None, ..batch.clone() }, None);
            drop(self.commands.as_ref().map(|commands| commands.send(Command::Run(call))));
            let at = self.clock.now();
            return Ok(vec![Submitted::Stored { at }; batch.tasks.len()]);
        }
        self.ask(batch).await
    }

    async fn get(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Task>> {
        let tenant = tenant.clone();
        self.readers.query(move |connection| reader::get(connection, &tenant, id)).await
    }

    async fn list(&self, page: ListTasks) -> Result<TaskList> {
        self.readers.query(move |connection| list::list(connection, &page)).await
    }

    async fn attempts(&self, tenant: &TenantName, id: TaskId) -> Result<Option<Vec<Attempt>>> {
        let tenant = tenant.clone();
        self.readers.query(move |connection| reader::attempts(connection, &tenant, id)).await
    }
}

#[async_trait]
impl Sessions for SqliteStore {
    async fn open_session(&self, session: OpenSession) -> Result<()> {
        self.ask(session).await
    }

    async fn beat(&self, beat: Heartbeat) -> Result<bool> {
        self.ask(beat).await
    }

    async fn keep_alive(&self, _: Vec<SessionId>) -> Result<Vec<SessionId>> {
        Ok(Vec::new())
    }

    async fn sessions(&self) -> Result<Vec<OpenedSession>> {
        self.ask(ListSessions).await
    }

    async fn workers(&self) -> Result<Vec<WorkerState>> {
        self.ask(ListWorkers).await
    }

    async fn drain(&self, session: SessionId, draining: bool) -> Result<bool> {
        self.ask(Drain { session, draining }).await
    }

    async fn draining(&self, sessions: Vec<SessionId>) -> Result<Vec<SessionId>> {
        let workers = self.workers().await?.into_iter().filter(|it| it.draining);
        let ids = workers.map(|it| it.opened.id).filter(|id| sessions.contains(id));
        Ok(ids.collect())
    }

    async fn serving(&self, lane: &Lane) -> Result<Vec<SessionId>> {
        let lane = lane.clone();
        self.readers.query(move |connection| serving::serving(connection, &lane)).await
    }

    async fn end_session(&self, session: SessionId, ending: Ending) -> Result<Vec<TaskId>> {
        self.ask(EndSession { session, ending }).await
    }

    async fn reap(&self, reap: Reap) -> Result<Reaped> {
        self.ask(reap).await
    }
}

#[async_trait]
impl Leases for SqliteStore {
    async fn exchange(&self, exchange: Exchange) -> Result<Exchanged> {
        let claimed = exchange.claim.as_ref().map_or(0, |claim| claim.max);
        if exchange.finishes.len() > STORE_BATCH || claimed > STORE_BATCH {
            return Err(Error::TooLarge { what: "a batch of leases", limit: STORE_BATCH });
        }
        self.ask(exchange).await
    }

    async fn extend(&self, order: ExtendLeases) -> Result<Vec<Extended>> {
        self.ask(order).await
    }
}

#[async_trait]
impl Control for SqliteStore {
    async fn cancel(&self, order: CancelTasks) -> Result<Vec<Controlled>> {
        self.ask(order).await
    }

    async fn replay(&self, order: ReplayTasks) -> Result<Vec<Controlled>> {
        self.ask(order).await
    }

    async fn retry(&self, order: RetryTasks) -> Result<Vec<Controlled>> {
        self.ask(order).await
    }

    async fn edit(&self, order: EditTask) -> Result<Controlled> {
        self.ask(order).await
    }
}

#[async_trait]
impl DeadLetters for SqliteStore {
    async fn dead_letters(&self, page: ListDead) -> Result<DeadList> {
        self.readers.query(move |connection| dead_letters::list(connection, &page)).await
    }

    async fn dead_groups(&self, which: GroupDead) -> Result<DeadGroups> {
        self.readers.query(move |connection| dead_letters::groups(connection, &which)).await
    }
}

#[async_trait]
impl Snapshots for SqliteStore {
    async fn snapshot(&self) -> Result<Option<Snapshot>> {
        let order = backup::CopyOrder::new(&self.path, &self.copying);
        let busy = || Error::Blocked { reason: "another backup is being made".to_owned() };
        let (order, answer) = order.ok_or_else(busy)?;
        self.send(Command::Copy(order))?;
        answer.await.map_err(|_| gone())?.map(Some)
    }

    fn copy_progress(&self) -> Option<CopyProgress> {
        *self.copying.lock()
    }
}

#[async_trait]
impl StoreHealth for SqliteStore {
    async fn now(&self) -> Result<Timestamp> {
        Ok(self.clock.now())
    }

    async fn check(&self) -> Result<()> {
        let troubled = self.health.lock().is_some();
        let dead = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        if troubled || dead { self.ask(Probe).await } else { Ok(()) }
    }

    async fn hint(&self) -> Hint {
        self.hints.next().await
    }
}
