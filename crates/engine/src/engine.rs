//! The engine: one value that the API, the CLI and embedded callers hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use duly_core::id::{SessionId, TaskId};
use duly_core::name::{QueueName, TenantName, TypeName};
use duly_core::ports::random::Random;
use duly_core::ports::store::{self, ListTasks, OpenSession, Store, TaskList};
use duly_core::ports::work_source::{TakenBack, WorkSource};
use duly_core::task::Task;
use parking_lot::{Mutex, RwLock};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backlog::Backlog;
use crate::desk::Desk;
use crate::dispatcher::Dispatcher;
use crate::outcomes::Outcomes;
use crate::served::Served;
use crate::source::LocalSource;
use crate::submitter::{Submission, Submitter};

/// Cheap to clone; the loops end with [`Engine::close`].
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    random: Arc<dyn Random>,
    ordinal: AtomicU32,
    submissions: Mutex<Option<mpsc::UnboundedSender<Submission>>>,
    backlog: Arc<Backlog>,
    desks: Arc<RwLock<Vec<Arc<Desk>>>>,
    sessions: Mutex<Vec<SessionId>>,
    outcomes: Arc<Outcomes>,
    served: Served,
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

impl Engine {
    /// Starts the loops on the current runtime.
    pub fn start(store: Arc<dyn Store>, random: Arc<dyn Random>) -> Self {
        let (submissions, inbox) = mpsc::unbounded_channel();
        let ordinal = u32::try_from(random.next() & 0xffff_ffff).expect("masked to 32 bits");
        let inner = Inner {
            store,
            random,
            ordinal: AtomicU32::new(ordinal),
            submissions: Mutex::new(Some(submissions)),
            backlog: Arc::default(),
            desks: Arc::default(),
            sessions: Mutex::default(),
            outcomes: Arc::default(),
            served: Served::default(),
            closing: CancellationToken::new(),
            stop: CancellationToken::new(),
            loops: TaskTracker::new(),
        };
        let submitter = Submitter {
            store: Arc::clone(&inner.store),
            inbox,
            backlog: Arc::clone(&inner.backlog),
            desks: Arc::clone(&inner.desks),
        };
        inner.loops.spawn(submitter.run());
        let (store, desks) = (Arc::clone(&inner.store), Arc::clone(&inner.desks));
        inner.loops.spawn(pass_hints(store, desks, inner.stop.clone()));
        Self { inner: Arc::new(inner) }
    }

    /// Opens a session for a worker in this process and returns its source of work.
    pub async fn open_worker(&self, worker: LocalWorker) -> store::Result<Arc<dyn WorkSource>> {
        let inner = &self.inner;
        let now = inner.store.now().await?;
        let id = SessionId::mint(now, inner.random.next());
        let LocalWorker { name, types, queues } = worker;
        inner.served.add(id, types.clone());
        inner.store.open_session(OpenSession { id, name, types, queues }).await?;
        inner.sessions.lock().push(id);
        let desk = Arc::new(Desk::new(id));
        let (finishes, inbox) = mpsc::unbounded_channel();
        let dispatcher = Dispatcher {
            store: Arc::clone(&inner.store),
            session: id,
            desk: Arc::clone(&desk),
            inbox,
            outcomes: Arc::clone(&inner.outcomes),
        };
        inner.loops.spawn(dispatcher.run(inner.stop.clone()));
        inner.desks.write().push(Arc::clone(&desk));
        Ok(Arc::new(LocalSource { desk, finishes }))
    }

    /// One task.
    pub async fn get(&self, tenant: &TenantName, id: TaskId) -> store::Result<Option<Task>> {
        self.inner.store.get(tenant, id).await
    }

    /// One page of tasks.
    pub async fn list(&self, page: ListTasks) -> store::Result<TaskList> {
        self.inner.store.list(page).await
    }

    /// Whether the store takes writes.
    pub async fn check(&self) -> store::Result<()> {
        self.inner.store.check().await
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
    /// of this process still hold.
    pub async fn close(&self) {
        self.begin_close();
        let inner = &self.inner;
        drop(inner.submissions.lock().take());
        inner.stop.cancel();
        inner.loops.close();
        inner.loops.wait().await;
        let sessions = std::mem::take(&mut *inner.sessions.lock());
        for session in sessions {
            inner.served.remove(session);
            if let Err(error) = inner.store.end_session(session).await {
                tracing::warn!(%error, "the session could not be ended; its leases come back later");
            }
        }
    }

    pub(crate) async fn closing(&self) {
        self.inner.closing.cancelled().await;
    }

    /// Tells the workers of this process that a lease is gone.
    pub(crate) fn take_back(&self, lease: TakenBack) {
        for desk in self.inner.desks.read().iter() {
            desk.take_back(lease);
        }
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

/// Tells every session of this node what the store hints at.
async fn pass_hints(
    store: Arc<dyn Store>,
    desks: Arc<RwLock<Vec<Arc<Desk>>>>,
    stop: CancellationToken,
) {
    loop {
        let due = tokio::select! {
            () = stop.cancelled() => return,
            due = store.hint() => due,
        };
        for desk in desks.read().iter() {
            desk.hint(due);
        }
    }
}
