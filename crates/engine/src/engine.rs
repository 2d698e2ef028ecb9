//! The engine: one value that the API, the CLI and embedded callers hold.

mod loops;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use duly_core::audit::Author;
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

use crate::attached_sessions::AttachedSessions;
use crate::backlog::Backlog;
use crate::claim_slot::ClaimSlots;
use crate::command::then::Adder;
use crate::critical_paths::CriticalPaths;
use crate::deadlines::Deadlines;
use crate::events::{Sinks, Tails, Written};
use crate::key_cache::KeyCache;
use crate::key_watches::KeyWatches;
use crate::leader::Leadership;
use crate::rates::Rates;
use crate::samplers::Samplers;
use crate::schedule_bell::ScheduleBell;
use crate::served_types::ServedTypes;
use crate::settings::CurrentSettings;
use crate::source::LocalSource;
use crate::submitter::Submission;
use crate::system;
use crate::task_waiters::TaskWaiters;
use crate::tenants::Tenants;

/// Cheap to clone; the loops end with [`Engine::close`].
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
    /// What commands change goes through this store; loops use that of `inner`.
    store: Arc<dyn Store>,
    /// For whom commands are carried out, if that is known.
    author: Option<Arc<Author>>,
}

/// How an engine is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long a worker or another node may send no heartbeat before its leases are taken back.
    pub session_ttl: Duration,
    /// Whether this node watches other processes, campaigns for leadership and runs system tasks.
    /// At least one node must.
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
    /// How this node has introduced itself to the other nodes.
    introduced: Arc<Mutex<Option<JoinNode>>>,
    sessions: Arc<AttachedSessions>,
    task_waiters: Arc<TaskWaiters>,
    served_types: Arc<ServedTypes>,
    /// Whether this node leads.
    leadership: Leadership,
    deadlines: Arc<Deadlines>,
    settings: Arc<CurrentSettings>,
    key_cache: Arc<KeyCache>,
    key_watches: Arc<KeyWatches>,
    tenants: Arc<Tenants>,
    critical_paths: CriticalPaths,
    schedule_bell: Arc<ScheduleBell>,
    sinks: Arc<Sinks>,
    written: Arc<Written>,
    tails: Arc<Tails>,
    samplers: Samplers,
    counting: Semaphore,
    /// Since when the store has failed its checks.
    unavailable_since: Mutex<Option<Instant>>,
    closing: CancellationToken,
    /// Stops the loops, after submits were closed.
    stop: CancellationToken,
    loops: TaskTracker,
}

/// A worker in this process.
#[derive(Clone, Debug)]
pub struct LocalWorker {
    /// Its name.
    pub name: String,
    /// The types it has handlers for.
    pub types: Vec<TypeName>,
    /// The queues it serves; all of them when empty.
    pub queues: Vec<QueueName>,
}

/// The session of a local worker, and its work source.
pub(crate) struct LocalSession {
    pub(crate) session: SessionId,
    pub(crate) source: Arc<dyn WorkSource>,
}

impl Engine {
    /// Starts the loops on the current runtime.
    pub fn start(store: Arc<dyn Store>, random: Arc<dyn Random>, config: Config) -> Self {
        let (submissions, inbox) = mpsc::unbounded_channel();
        let ordinal = u32::try_from(random.next() & 0xffff_ffff).expect("masked to 32 bits");
        let settings = Arc::new(CurrentSettings::new(Arc::clone(&store)));
        let tenants = Arc::new(Tenants::new(Arc::clone(&store)));
        let adder = Adder {
            store: Arc::clone(&store),
            random: Arc::clone(&random),
            settings: Arc::clone(&settings),
            tenants: Arc::clone(&tenants),
        };
        let sessions = Arc::new(AttachedSessions {
            store: Arc::clone(&store),
            cascade_bell: Arc::default(),
            adder,
            claim_slots: ClaimSlots::default(),
            task_waiters: Arc::default(),
            deadlines: Arc::default(),
            rates: Arc::default(),
            served_types: Arc::default(),
            stop: CancellationToken::new(),
            loops: TaskTracker::new(),
            remote: Mutex::default(),
            local: Mutex::default(),
        });
        let (sinks, written) = (Arc::<Sinks>::default(), Arc::<Written>::default());
        let tails = Tails::new(&sessions, Arc::clone(&sinks), Arc::clone(&written));
        let key_cache = Arc::new(KeyCache::new(Arc::clone(&store)));
        let samplers = Samplers::new(&sessions);
        let inner = Inner {
            config,
            sinks,
            written,
            tails: Arc::new(tails),
            samplers,
            settings,
            tenants,
            key_watches: Arc::new(KeyWatches::new(Arc::clone(&key_cache))),
            key_cache,
            critical_paths: CriticalPaths::default(),
            leadership: Leadership::default(),
            schedule_bell: Arc::default(),
            store,
            random,
            ordinal: AtomicU32::new(ordinal),
            submissions: Mutex::new(Some(submissions)),
            backlog: Arc::default(),
            introduced: Arc::default(),
            task_waiters: Arc::clone(&sessions.task_waiters),
            served_types: Arc::clone(&sessions.served_types),
            deadlines: Arc::clone(&sessions.deadlines),
            counting: Semaphore::new(1),
            unavailable_since: Mutex::default(),
            closing: CancellationToken::new(),
            stop: sessions.stop.clone(),
            loops: sessions.loops.clone(),
            sessions,
        };
        inner.start_loops(inbox);
        let store = Arc::clone(&inner.store);
        let engine = Self { inner: Arc::new(inner), store, author: None };
        if config.is_scheduler {
            engine.spawn(system::run(engine.clone(), engine.inner.stop.clone()));
        }
        engine
    }

    /// The same engine for one author: what its commands change is written to the audit log, and sessions
    /// that it opens are for this author alone.
    #[must_use]
    pub fn on_behalf_of(&self, author: Author) -> Self {
        let store = self.inner.store.on_behalf_of(author.clone());
        Self { inner: Arc::clone(&self.inner), store, author: Some(Arc::new(author)) }
    }

    /// Who owns the sessions that are opened.
    pub(crate) fn owner(&self) -> Option<&Arc<str>> {
        self.author.as_ref().and_then(|author| author.owner())
    }

    /// Opens a session for a worker in this process and returns its work source.
    pub async fn open_worker(&self, worker: LocalWorker) -> store::Result<Arc<dyn WorkSource>> {
        Ok(self.open_session(worker).await?.source)
    }

    pub(crate) async fn open_session(&self, worker: LocalWorker) -> store::Result<LocalSession> {
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
            owner: None,
        };
        inner.store.open_session(session.clone()).await?;
        let attached = inner.sessions.attach_local(&session);
        let sessions = Arc::clone(&inner.sessions);
        let (claim_slot, finishes) = (Arc::clone(&attached.claim_slot), attached.finishes.clone());
        let source = LocalSource { claim_slot, finishes, sessions };
        Ok(LocalSession { session: session.id, source: Arc::new(source) })
    }

    /// Spawns a future that [`Engine::close`] waits for.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.inner.loops.spawn(work);
    }

    /// One task.
    pub async fn get(&self, tenant: &TenantName, id: TaskId) -> store::Result<Option<Task>> {
        self.inner.store.get(tenant, id).await
    }

    /// One page of tasks, by first due time, newest first.
    pub async fn list(&self, page: ListTasks) -> store::Result<TaskList> {
        self.inner.store.list(page).await
    }

    /// Whether the store takes writes.
    pub async fn check(&self) -> store::Result<()> {
        let checked = self.inner.store.check().await;
        let mut since = self.inner.unavailable_since.lock();
        match &checked {
            Ok(()) => *since = None,
            Err(_) => {
                since.get_or_insert_with(Instant::now);
            }
        }
        checked
    }

    /// For how long the store has failed its checks.
    pub fn unavailable_for(&self) -> Duration {
        self.inner.unavailable_since.lock().map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Notes that a check timed out.
    pub fn note_check_timeout(&self) {
        self.inner.unavailable_since.lock().get_or_insert_with(Instant::now);
    }

    /// Begins the shutdown: readiness turns off and waiting callers are answered.
    pub fn begin_close(&self) {
        self.inner.closing.cancel();
    }

    /// Whether shutdown has begun.
    pub fn is_closing(&self) -> bool {
        self.inner.closing.is_cancelled()
    }

    /// Ends the loops after they have handled all requests, and releases the leases of local
    /// workers. Remote workers keep their leases and report their outcomes to another node, or to
    /// this one after its restart.
    pub async fn close(&self) {
        self.begin_close();
        let inner = &self.inner;
        drop(inner.submissions.lock().take());
        inner.stop.cancel();
        inner.loops.close();
        inner.loops.wait().await;
        for session in inner.sessions.local_ids() {
            inner.sessions.detach_local(session);
            if let Err(error) = inner.store.end_session(session, Ending::Closed).await {
                tracing::warn!(%error, "cannot end the session; its leases are taken back later");
            }
        }
        if let Err(error) = inner.store.leave().await {
            tracing::debug!(%error, "cannot leave; the node stays listed until it expires");
        }
    }

    pub(crate) fn introduced(&self) -> &Mutex<Option<JoinNode>> {
        &self.inner.introduced
    }

    /// Waits until shutdown begins.
    pub async fn closing(&self) {
        self.inner.closing.cancelled().await;
    }

    pub(crate) fn config(&self) -> Config {
        self.inner.config
    }

    pub(crate) fn sessions(&self) -> &AttachedSessions {
        &self.inner.sessions
    }

    /// Held while counting tasks: one count at a time.
    pub(crate) fn counting(&self) -> &Semaphore {
        &self.inner.counting
    }

    /// Tells the loop that cancels tasks that there is probably work for it.
    pub(crate) fn cascade_now(&self) {
        self.inner.sessions.cascade_bell.ring();
    }

    /// The same if there may be work.
    pub(crate) fn cascade_soon(&self) {
        self.inner.sessions.cascade_bell.ring_soon();
    }

    /// Whether this node leads.
    pub(crate) fn leadership(&self) -> Leadership {
        self.inner.leadership.clone()
    }

    /// Tells loops to end.
    pub(crate) fn stop_signal(&self) -> CancellationToken {
        self.inner.stop.clone()
    }

    /// Tells the coordinator of changed schedules.
    pub(crate) fn schedule_bell(&self) -> &ScheduleBell {
        &self.inner.schedule_bell
    }

    /// The sinks that this node can serve.
    pub(crate) fn sinks(&self) -> &Sinks {
        &self.inner.sinks
    }

    pub(crate) fn tails(&self) -> &Arc<Tails> {
        &self.inner.tails
    }

    pub(crate) fn samplers(&self) -> &Samplers {
        &self.inner.samplers
    }

    pub(crate) fn critical_paths(&self) -> &CriticalPaths {
        &self.inner.critical_paths
    }

    pub(crate) fn rates(&self) -> &Rates {
        &self.inner.sessions.rates
    }

    pub(crate) fn deadlines(&self) -> &Deadlines {
        &self.inner.deadlines
    }

    pub(crate) fn current_settings(&self) -> &CurrentSettings {
        &self.inner.settings
    }

    pub(crate) fn known_tenants(&self) -> &Tenants {
        &self.inner.tenants
    }

    pub(crate) fn key_cache(&self) -> &KeyCache {
        &self.inner.key_cache
    }

    pub(crate) fn key_watches(&self) -> &KeyWatches {
        &self.inner.key_watches
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(crate) fn random(&self) -> &dyn Random {
        &*self.inner.random
    }

    pub(crate) fn task_waiters(&self) -> &Arc<TaskWaiters> {
        &self.inner.task_waiters
    }

    pub(crate) fn served_types(&self) -> &ServedTypes {
        &self.inner.served_types
    }

    pub(crate) fn backlog(&self) -> &Backlog {
        &self.inner.backlog
    }

    pub(crate) fn next_ordinal(&self) -> u32 {
        self.inner.ordinal.fetch_add(1, Ordering::Relaxed)
    }

    /// The channel to the submitter, until the engine closes.
    pub(crate) fn submissions(&self) -> Option<mpsc::UnboundedSender<Submission>> {
        self.inner.submissions.lock().clone()
    }
}
