//! An engine with one worker session, over a store that counts and fails calls on demand.

#![expect(clippy::unwrap_used, reason = "a world that cannot be made fails its test")]

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::{NodeId, TaskId};
use duly_core::lease::{Finish, Lease, Outcome};
use duly_core::name::{TenantName, TypeName};
use duly_core::ports::random::Random as _;
use duly_core::ports::store::Store;
use duly_core::ports::work_source::WorkSource;
use duly_core::submit::Draft;
use duly_core::task::Task;
use duly_core::time::Timestamp;
use duly_engine::Engine;
use duly_engine::command::submit::Accepted;
use duly_engine::engine::LocalWorker;
use duly_engine::random::OsRandom;
use duly_store::layer::Layered;

use crate::faults::Faults;
use crate::stores::{self, Files};

pub(crate) const TTL: Duration = Duration::from_secs(10);
pub(crate) const CONFIG: duly_engine::Config =
    duly_engine::Config { session_ttl: TTL, is_scheduler: true };

pub(crate) struct World {
    pub(crate) engine: Engine,
    /// What the engine uses: the store behind its faults.
    pub(crate) store: Arc<dyn Store>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) source: Arc<dyn WorkSource>,
    _files: Files,
}

impl World {
    /// Over the store that this test runs on; see [`stores`].
    pub(crate) async fn new() -> Self {
        let (store, files) = stores::open().await;
        Self::over(store, files, |_| {}).await
    }

    /// Over a store whose hints are all lost.
    pub(crate) async fn losing_hints() -> Self {
        let (store, files) = stores::open_losing_hints(stores::current()).await;
        Self::over(store, files, |_| {}).await
    }

    /// One that starts with settings that cannot be read.
    pub(crate) async fn with_damaged_settings() -> Self {
        let (store, files) = stores::open().await;
        Self::over(store, files, |faults| faults.set_damaged(true)).await
    }

    /// One whose store is shared with other nodes.
    pub(crate) async fn among_others() -> Self {
        let store = stores::memory().as_node(NodeId::from_bytes([1; 16]));
        Self::over(Arc::new(store), Files::None, |_| {}).await
    }

    /// The same, with all hints lost.
    pub(crate) async fn among_others_losing_hints() -> Self {
        let store = stores::memory().as_node(NodeId::from_bytes([1; 16]));
        Self::over(stores::losing_hints(Arc::new(store)), Files::None, |_| {}).await
    }

    async fn over(store: Arc<dyn Store>, files: Files, prepare: fn(&Faults)) -> Self {
        let faults = Arc::new(Faults::new(store.clone()));
        prepare(&faults);
        let store: Arc<dyn Store> = Arc::new(Layered::new(faults.clone(), store));
        let random = Arc::new(OsRandom::new());
        assert_ne!(random.next(), random.next());
        let engine = Engine::start(store.clone(), random, CONFIG);
        let types = vec![TypeName::new("echo").unwrap()];
        let worker = LocalWorker { name: "test".to_owned(), types, queues: vec![] };
        let source = engine.open_worker(worker).await.unwrap();
        Self { engine, store, faults, source, _files: files }
    }

    pub(crate) async fn submit(&self, draft: Draft) -> Accepted {
        let spec = draft.check().unwrap();
        let tenant = TenantName::default_tenant();
        let mut answers = self.engine.submit(&tenant, vec![spec]).await.unwrap();
        answers.remove(0).unwrap()
    }

    /// The same once nothing else is left to do: claims that were made before wait by then.
    pub(crate) async fn submit_when_idle(&self, draft: Draft) -> Accepted {
        settle().await;
        self.submit(draft).await
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

/// Waits until nothing is left to do, for example for the engine's start.
pub(crate) async fn settle() {
    pass(Duration::from_millis(1)).await;
}

/// Lets paused time pass.
pub(crate) async fn pass(time: Duration) {
    let never = std::future::pending::<()>();
    assert!(tokio::time::timeout(time, never).await.is_err());
}

/// Polls a future until nothing is left to do. It must not end.
pub(crate) async fn must_wait<T>(future: &mut (impl Future<Output = T> + Unpin)) {
    tokio::select! {
        biased;
        _ = future => panic!("it has ended"),
        () = settle() => {}
    }
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
