//! An engine on a fresh file, with a worker whose handlers do nothing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use duly_core::limits::PREFETCH;
use duly_core::name::TenantName;
use duly_core::ports::work_source::WorkSource;
use duly_core::submit::{Draft, Spec};
use duly_engine::Engine;
use duly_engine::engine::LocalWorker;
use duly_engine::random::OsRandom;
use duly_store::sqlite::limit::PAYLOAD;
use duly_worker::{Config, Context, Executor, Handler, HandlerError, Output, Registry, Report};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::wiring;

pub(super) struct World {
    pub(super) engine: Engine,
}

impl World {
    pub(super) fn open(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self { engine: wiring::open_engine(folder)? })
    }

    /// Submits `tasks` no-ops in batches, from a few callers at once.
    pub(super) async fn submit(&self, tasks: usize, delay_seconds: f64) -> anyhow::Result<()> {
        const CALLERS: usize = 4;
        let spec = no_op(delay_seconds);
        let left = Arc::new(AtomicUsize::new(tasks / super::BATCH));
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..CALLERS {
            let (engine, spec, left) = (self.engine.clone(), spec.clone(), Arc::clone(&left));
            callers.spawn(async move {
                let tenant = TenantName::default_tenant();
                let take = |left: usize| left.checked_sub(1);
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                    let answers = engine.submit(&tenant, vec![spec.clone(); super::BATCH]).await?;
                    assert!(answers.iter().all(Result::is_ok), "a no-op is always taken");
                }
                anyhow::Ok(())
            });
        }
        while let Some(caller) = callers.join_next().await {
            caller??;
        }
        Ok(())
    }

    /// Starts a worker with this handler for the type `noop`.
    pub(super) async fn work(&self, handler: impl Handler + 'static) -> anyhow::Result<Working> {
        let (registry, config) = worker(handler);
        let worker =
            LocalWorker { name: "bench".to_owned(), types: registry.types(), queues: Vec::new() };
        let source = self.engine.open_worker(worker).await?;
        Ok(run(registry, config, source))
    }
}

/// The type of the tasks that do nothing.
pub(super) const NO_OP: &str = "noop";

/// A worker whose handler for the no-op is this one.
pub(super) fn worker(handler: impl Handler + 'static) -> (Registry, Config) {
    let registry = Registry::new().with(NO_OP, handler);
    (registry, Config { concurrency: 64, prefetch: PREFETCH })
}

/// Runs a worker on a source of work.
pub(super) fn run(registry: Registry, config: Config, source: Arc<dyn WorkSource>) -> Working {
    let executor = Executor::new(config, registry, source, Arc::new(OsRandom::new()));
    let stop = CancellationToken::new();
    let run = TaskTracker::new().spawn(executor.run(stop.clone(), Duration::from_secs(10)));
    Working { stop, run }
}

/// A worker that runs until it is told to stop.
pub(super) struct Working {
    stop: CancellationToken,
    run: tokio::task::JoinHandle<Report>,
}

impl Working {
    /// Stops once every outcome is committed.
    pub(super) async fn stop(self) -> anyhow::Result<Report> {
        self.stop.cancel();
        Ok(self.run.await?)
    }
}

/// A valid submit of the type `noop`.
pub(super) fn no_op(delay_seconds: f64) -> Spec {
    let draft = Draft {
        task_type: Some(NO_OP.to_owned()),
        payload: Some(PAYLOAD.to_owned()),
        delay_seconds: Some(delay_seconds),
        ..Draft::default()
    };
    draft.check().expect("a valid draft")
}

/// Does nothing, and says when it has done so often enough.
#[derive(Clone)]
pub(super) struct Counter {
    left: Arc<AtomicUsize>,
    done: Arc<Notify>,
}

impl Counter {
    pub(super) fn new(tasks: usize) -> Self {
        Self { left: Arc::new(AtomicUsize::new(tasks)), done: Arc::default() }
    }

    pub(super) async fn done(&self) {
        self.done.notified().await;
    }
}

#[async_trait]
impl Handler for Counter {
    async fn run(&self, _: Context) -> Result<Output, HandlerError> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.done.notify_one();
        }
        Ok(Output::none())
    }
}
