//! The engine: one value that the API, the CLI and embedded callers hold.

mod loops;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use duly_core::id::{SessionId, TaskId};
use duly_core::limits::SESSION_TTL;
use duly_core::name::{QueueName, TenantName, TypeName};
use duly_core::ports::random::Random;
use duly_core::ports::store::{
    self, Ending, Home, JoinNode, ListTasks, OpenSession, Store, TaskList,
};
use duly_core::ports::work_source::WorkSource;
use duly_core::task::Task;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backlog::Backlog;
use crate::deadlines::Deadlines;
use crate::desk::Desks;
use crate::outcomes::Outcomes;
use crate::rates::Rates;
use crate::remotes::Remotes;
use crate::served::Served;
use crate::settings::Current;
use crate::source::LocalSource;
use crate::submitter::Submission;
use crate::system;

/// Cheap to clone; the loops end with [`Engine::close`].
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

/// How an engine is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long a worker or another node may be silent before its leases are taken back.
    pub session_ttl: Duration,
    /// Whether this node watches the others, stands for leader and carries out the system's own
    /// tasks. Some node has to.
    pub is_scheduler: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { session_ttl: SESSION_TTL, is_scheduler: true }
    }
}

/// What the engine and its loops share.
struct Inner {
    config: Config,
    store: Arc<dyn Store>,
    random: Arc<dyn Random>,
    ordinal: AtomicU32,
    submissions: Mutex<Option<mpsc::UnboundedSender<Submission>>>,
    backlog: Arc<Backlog>,
    /// How this node has introduced itself.
    introduced: Arc<Mutex<Option<JoinNode>>>,
    remotes: Arc<Remotes>,
    outcomes: Arc<Outcomes>,
    served: Arc<Served>,
    deadlines: Arc<Deadlines>,
    settings: Arc<Current>,
    counting: Semaphore,
    /// Since when the store has failed its checks.
    away: Mutex<Option<Instant>>,
    closing: CancellationToken,
    /// Ends the loops, once nothing new can reach them.
    stop: CancellationToken,
    loops: TaskTracker,
}

/// A worker that lives in this process.
#[derive(Clone, Debug)]
pub struct LocalWorker {
    /// What it calls itself.
    pub name: String,
    /// The types it has handlers for.
    pub types: Vec<TypeName>,
    /// The queues it serves; all of them when empty.
    pub queues: Vec<QueueName>,
}

/// A session of this process, and where it gets its work from.
pub(crate) struct Opened {
    pub(crate) session: SessionId,
    pub(crate) source: Arc<dyn WorkSource>,
}

impl Engine {
    /// Starts the loops on the current runtime.
    pub fn start(store: Arc<dyn Store>, random: Arc<dyn Random>, config: Config) -> Self {
        let (submissions, inbox) = mpsc::unbounded_channel();
        let ordinal = u32::try_from(random.next() & 0xffff_ffff).expect("masked to 32 bits");
        let remotes = Arc::new(Remotes {
            store: Arc::clone(&store),
            desks: Desks::default(),
            outcomes: Arc::default(),
            deadlines: Arc::default(),
            rates: Arc::default(),
            served: Arc::default(),
            stop: CancellationToken::new(),
            loops: TaskTracker::new(),
            attached: Mutex::default(),
            local: Mutex::default(),
        });
        let inner = Inner {
            config,
            settings: Arc::new(Current::new(Arc::clone(&store))),
            store,
            random,
            ordinal: AtomicU32::new(ordinal),
            submissions: Mutex::new(Some(submissions)),
            backlog: Arc::default(),
            introduced: Arc::default(),
            outcomes: Arc::clone(&remotes.outcomes),
            served: Arc::clone(&remotes.served),
            deadlines: Arc::clone(&remotes.deadlines),
            counting: Semaphore::new(1),
            away: Mutex::default(),
            closing: CancellationToken::new(),
            stop: remotes.stop.clone(),
            loops: remotes.loops.clone(),
            remotes,
        };
        inner.start_loops(inbox);
        let engine = Self { inner: Arc::new(inner) };
        if config.is_scheduler {
            engine.spawn(system::run(engine.clone(), engine.inner.stop.clone()));
        }
        engine
    }

    /// Opens a session for a worker in this process and returns its source of work.
    pub async fn open_worker(&self, worker: LocalWorker) -> store::Result<Arc<dyn WorkSource>> {
        Ok(self.open_session(worker).await?.source)
    }

    pub(crate) async fn open_session(&self, worker: LocalWorker) -> store::Result<Opened> {
        let inner = &self.inner;
        let now = inner.store.now().await?;
        let LocalWorker { name, types, queues } = worker;
        let session = OpenSession {
            id: SessionId::mint(now, inner.random.next()),
            name,
            tenant: None,
            types,
            queues,
            home: Home::Local,
        };
        inner.store.open_session(session.clone()).await?;
        let attached = inner.remotes.attach_local(&session);
        let remotes = Arc::clone(&inner.remotes);
        let (desk, finishes) = (Arc::clone(&attached.desk), attached.finishes.clone());
        let source = LocalSource { desk, finishes, remotes };
        Ok(Opened { session: session.id, source: Arc::new(source) })
    }

    /// Runs something that ends with the loops.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.inner.loops.spawn(work);
    }

    /// One task.
    pub async fn get(&self, tenant: &TenantName, id: TaskId) -> store::Result<Option<Task>> {
        self.inner.store.get(tenant, id).await
    }

    /// One page of tasks, newest first due time first.
    pub async fn list(&self, page: ListTasks) -> store::Result<TaskList> {
        self.inner.store.list(page).await
    }

    /// Whether the store takes writes.
    pub async fn check(&self) -> store::Result<()> {
        let checked = self.inner.store.check().await;
        let mut away = self.inner.away.lock();
        match &checked {
            Ok(()) => *away = None,
            Err(_) => {
                away.get_or_insert_with(Instant::now);
            }
        }
        checked
    }

    /// For how long the store has failed its checks.
    pub fn away_for(&self) -> Duration {
        self.inner.away.lock().map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Notes that a check was given up.
    pub fn note_silence(&self) {
        self.inner.away.lock().get_or_insert_with(Instant::now);
    }

    /// Says that the end is near: readiness turns off and waiting callers are answered.
    pub fn begin_close(&self) {
        self.inner.closing.cancel();
    }

    /// Whether shutdown has begun.
    pub fn is_closing(&self) -> bool {
        self.inner.closing.is_cancelled()
    }

    /// Ends the loops after they have done what was asked of them, and puts back what workers
    /// of this process still hold. Workers elsewhere keep what they have: they report it to
    /// whoever opens the store next.
    pub async fn close(&self) {
        self.begin_close();
        let inner = &self.inner;
        drop(inner.submissions.lock().take());
        inner.stop.cancel();
        inner.loops.close();
        inner.loops.wait().await;
        for session in inner.remotes.local_ids() {
            inner.remotes.close_local(session);
            if let Err(error) = inner.store.end_session(session, Ending::Closed).await {
                tracing::warn!(%error, "the session could not be ended; its leases come back later");
            }
        }
        if let Err(error) = inner.store.leave().await {
            tracing::debug!(%error, "the node stays listed until it is forgotten");
        }
    }

    pub(crate) fn introduced(&self) -> &Mutex<Option<JoinNode>> {
        &self.inner.introduced
    }

    pub(crate) async fn closing(&self) {
        self.inner.closing.cancelled().await;
    }

    pub(crate) fn config(&self) -> Config {
        self.inner.config
    }

    pub(crate) fn remotes(&self) -> &Remotes {
        &self.inner.remotes
    }

    /// Whose turn it is to count tasks.
    pub(crate) fn counting(&self) -> &Semaphore {
        &self.inner.counting
    }

    pub(crate) fn rates(&self) -> &Rates {
        &self.inner.remotes.rates
    }

    pub(crate) fn deadlines(&self) -> &Deadlines {
        &self.inner.deadlines
    }

    pub(crate) fn current_settings(&self) -> &Current {
        &self.inner.settings
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    pub(crate) fn random(&self) -> &dyn Random {
        &*self.inner.random
    }

    pub(crate) fn outcomes(&self) -> &Arc<Outcomes> {
        &self.inner.outcomes
    }

    pub(crate) fn served(&self) -> &Served {
        &self.inner.served
    }

    pub(crate) fn backlog(&self) -> &Backlog {
        &self.inner.backlog
    }

    pub(crate) fn next_ordinal(&self) -> u32 {
        self.inner.ordinal.fetch_add(1, Ordering::Relaxed)
    }

    /// The way to the submitter, until the engine closes.
    pub(crate) fn submissions(&self) -> Option<mpsc::UnboundedSender<Submission>> {
        self.inner.submissions.lock().clone()
    }
}
