//! The worker in this process; it opens a new session when its session ends.

use std::sync::Arc;
use std::time::Duration;

use duly_core::ports::random::Random;
use duly_core::ports::store;
use duly_core::ports::work_source::WorkSource;
use duly_engine::Engine;
use duly_engine::engine::LocalWorker as Description;
use duly_worker::{Executor, Registry};
use tokio_util::sync::CancellationToken;

use super::GRACE;
use super::follow::follow_settings;

/// The first and the longest wait before a new session is opened.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// A worker in the process of the engine.
pub(super) struct LocalWorker {
    pub(super) engine: Engine,
    pub(super) name: String,
    pub(super) registry: Registry,
    pub(super) config: duly_worker::Config,
    pub(super) random: Arc<dyn Random>,
}

impl LocalWorker {
    /// Opens a session.
    pub(super) async fn open(&self) -> store::Result<Arc<dyn WorkSource>> {
        let worker = Description {
            name: self.name.clone(),
            types: self.registry.types(),
            queues: Vec::new(),
        };
        self.engine.open_worker(worker).await
    }

    /// Works until it is stopped. If another node has ended its session, it stops its handlers, since
    /// their outcomes would be refused, and continues under a new session.
    pub(super) async fn run(self, first: Arc<dyn WorkSource>, stop: CancellationToken) {
        let mut source = first;
        loop {
            self.work(source, &stop).await;
            source = tokio::select! {
                () = stop.cancelled() => return,
                source = self.reopen() => source,
            };
        }
    }

    /// Works under one session.
    async fn work(&self, source: Arc<dyn WorkSource>, stop: &CancellationToken) {
        let random = Arc::clone(&self.random);
        let executor = Executor::new(self.config, self.registry.clone(), source, random);
        let follow = follow_settings(self.engine.clone(), self.config, executor.concurrency());
        tokio::select! {
            report = executor.run(stop.clone(), GRACE) => {
                tracing::info!(?report, "the worker has stopped");
            }
            () = follow => {}
        }
    }

    async fn reopen(&self) -> Arc<dyn WorkSource> {
        let (mut wait, longest) = BACK_OFF;
        loop {
            tokio::time::sleep(wait).await;
            match self.open().await {
                Ok(source) => return source,
                Err(error) => tracing::debug!(%error, "the worker waits for the store"),
            }
            wait = (wait * 2).min(longest);
        }
    }
}
