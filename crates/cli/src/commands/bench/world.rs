//! An engine on a fresh store, with a worker whose handlers do nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use duly_core::limits::PREFETCH;
use duly_core::name::TenantName;
use duly_core::ports::work_source::WorkSource;
use duly_core::submit::{Draft, Spec};
use duly_engine::Engine;
use duly_engine::engine::LocalWorker;
use duly_engine::random::OsRandom;
use duly_store::limit::PAYLOAD;
use duly_worker::{
    Config, Context, Executor, ExecutorReport, Handler, HandlerError, Output, Registry,
};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::store_site::{OpenStore, StoreSite};
use crate::wiring;

pub(super) struct World {
    pub(super) engine: Engine,
    store: OpenStore,
}

impl World {
    pub(super) async fn open(site: StoreSite) -> anyhow::Result<Self> {
        let store = site.open().await?;
        let engine = wiring::engine_on(store.store());
        Ok(Self { engine, store })
    }

    /// See [`OpenStore::log_bytes`].
    pub(super) async fn log_bytes(&self) -> anyhow::Result<u64> {
        self.store.log_bytes().await
    }

    /// See [`OpenStore::settle`].
    pub(super) async fn settle(&self) -> anyhow::Result<()> {
        self.store.settle().await
    }

    /// Ends the engine and closes its store.
    pub(super) async fn close(self) -> StoreSite {
        let Self { engine, store } = self;
        engine.close().await;
        drop(engine);
        store.close()
    }

    /// Ends the engine and removes its store.
    pub(super) async fn remove(self) -> anyhow::Result<()> {
        self.close().await.remove().await
    }

    /// Submits `tasks` no-ops in batches, from a few callers at once.
    pub(super) async fn submit(&self, tasks: usize, delay_seconds: f64) -> anyhow::Result<()> {
        self.submit_all(tasks, Arc::from([no_op(delay_seconds)])).await
    }

    /// Submits one batch of no-ops that are due.
    pub(super) async fn submit_batch(&self, tasks: usize) -> anyhow::Result<()> {
        submit(&self.engine, vec![no_op(0.0); tasks]).await
    }

    /// Submits no-ops to a waiting worker, until the last outcome is committed.
    pub(super) async fn cycle(&self, tasks: usize) -> anyhow::Result<Duration> {
        self.cycle_over(tasks, 1).await
    }

    /// The same, spread over several queues.
    pub(super) async fn cycle_over(&self, tasks: usize, queues: usize) -> anyhow::Result<Duration> {
        let specs = (0..queues).map(no_op_in).collect();
        let counter = Counter::new(tasks);
        let worker = self.work(counter.clone()).await?;
        let start = Instant::now();
        self.submit_all(tasks, specs).await?;
        counter.done().await;
        worker.stop(tasks).await?;
        Ok(start.elapsed())
    }

    /// Submits `tasks` in batches, cycling through the specs.
    async fn submit_all(&self, tasks: usize, specs: Arc<[Spec]>) -> anyhow::Result<()> {
        const CALLERS: usize = 4;
        let next = Arc::new(AtomicUsize::new(0));
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let (engine, specs, next) =
                (self.engine.clone(), Arc::clone(&specs), Arc::clone(&next));
            callers.spawn(async move {
                loop {
                    let first = next.fetch_add(super::BATCH, Ordering::Relaxed);
                    if first >= tasks {
                        return anyhow::Ok(());
                    }
                    let batch = first..(first + super::BATCH).min(tasks);
                    let batch = batch.map(|task| specs[task % specs.len()].clone());
                    submit(&engine, batch.collect()).await?;
                }
            });
        }
        while let Some(caller) = callers.join_next().await {
            caller??;
        }
        Ok(())
    }

    /// Starts a worker with this handler for the type `noop`.
    pub(super) async fn work(
        &self,
        handler: impl Handler + 'static,
    ) -> anyhow::Result<RunningWorker> {
        let (registry, config) = worker(handler);
        let worker =
            LocalWorker { name: "bench".to_owned(), types: registry.types(), queues: Vec::new() };
        let source = self.engine.open_worker(worker).await?;
        Ok(run(registry, config, source))
    }
}

async fn submit(engine: &Engine, specs: Vec<Spec>) -> anyhow::Result<()> {
    let answers = engine.submit(&TenantName::default_tenant(), specs).await?;
    assert!(answers.iter().all(Result::is_ok), "a no-op is always accepted");
    Ok(())
}

/// The type of the tasks that do nothing.
pub(super) const NO_OP: &str = "noop";

/// A worker whose handler for the no-op is this one.
pub(super) fn worker(handler: impl Handler + 'static) -> (Registry, Config) {
    let registry = Registry::new().with(NO_OP, handler);
    (registry, Config { concurrency: 64, prefetch: PREFETCH })
}

/// Runs a worker on a source of work.
pub(super) fn run(
    registry: Registry,
    config: Config,
    source: Arc<dyn WorkSource>,
) -> RunningWorker {
    let executor = Executor::new(config, registry, source, Arc::new(OsRandom::new()));
    let stop = CancellationToken::new();
    let run = TaskTracker::new().spawn(executor.run(stop.clone(), Duration::from_secs(10)));
    RunningWorker { stop, run }
}

/// A worker that runs until it is stopped.
pub(super) struct RunningWorker {
    stop: CancellationToken,
    run: tokio::task::JoinHandle<ExecutorReport>,
}

impl RunningWorker {
    /// Stops the worker.
    pub(super) async fn end(self) -> anyhow::Result<ExecutorReport> {
        self.stop.cancel();
        Ok(self.run.await?)
    }

    /// Stops the worker and checks that it has committed this many outcomes.
    pub(super) async fn stop(self, tasks: usize) -> anyhow::Result<()> {
        let report = self.end().await?;
        assert_eq!(report.done, tasks as u64, "every outcome is committed: {report:?}");
        Ok(())
    }
}

/// A valid submit of the type `noop`.
pub(super) fn no_op(delay_seconds: f64) -> Spec {
    check(Draft { delay_seconds: Some(delay_seconds), ..draft() })
}

/// A due task in one of many queues; the first is the default.
fn no_op_in(queue: usize) -> Spec {
    let queue = (queue > 0).then(|| format!("queue-{queue}"));
    check(Draft { queue, ..draft() })
}

fn draft() -> Draft {
    Draft {
        task_type: Some(NO_OP.to_owned()),
        payload: Some(PAYLOAD.to_owned()),
        ..Draft::default()
    }
}

fn check(draft: Draft) -> Spec {
    draft.check().expect("a valid draft")
}

/// A handler that only counts its calls.
#[derive(Clone)]
pub(super) struct Counter {
    tasks: usize,
    shared: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    started: AtomicUsize,
    /// How many starts the waiter waits for.
    wanted: AtomicUsize,
    reached: Notify,
}

impl Counter {
    pub(super) fn new(tasks: usize) -> Self {
        Self { tasks, shared: Arc::default() }
    }

    /// How many tasks have started.
    pub(super) fn count(&self) -> usize {
        self.shared.started.load(Ordering::SeqCst)
    }

    /// Waits until all tasks have started.
    pub(super) async fn done(&self) {
        self.started(self.tasks).await;
    }

    /// Waits until this many tasks have started. For one waiter at a time.
    pub(super) async fn started(&self, tasks: usize) {
        self.shared.wanted.store(tasks, Ordering::SeqCst);
        while self.shared.started.load(Ordering::SeqCst) < tasks {
            self.shared.reached.notified().await;
        }
    }
}

#[async_trait]
impl Handler for Counter {
    async fn run(&self, _: Context) -> Result<Output, HandlerError> {
        let started = self.shared.started.fetch_add(1, Ordering::SeqCst) + 1;
        if started == self.shared.wanted.load(Ordering::SeqCst) {
            self.shared.reached.notify_one();
        }
        Ok(Output::none())
    }
}
