//! The one place that picks concrete types and ties them together.

mod follow;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use duly_api::HostPolicy;
use duly_core::limits::PREFETCH;
use duly_core::ports::clock::Clock;
use duly_core::ports::random::Random;
use duly_core::ports::store::{Rules, Store};
use duly_engine::Engine;
use duly_engine::engine::LocalWorker;
use duly_engine::random::OsRandom;
use duly_store::clock::SystemClock;
use duly_store::sqlite::SqliteStore;
use duly_worker::handlers::Shell;
use duly_worker::{Executor, Guard, Registry, handlers};
use ipnet::IpNet;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use self::worker::RemoteWorker;
use crate::args::DevArgs;
use crate::{files, output};

/// The store of a server that needs nothing else.
pub(crate) type Embedded = SqliteStore;

/// The database in a data directory.
pub(crate) const DATABASE: &str = "duly.db";
/// How long handlers may go on after the first signal.
const GRACE: Duration = Duration::from_secs(10);

/// A running server: API, engine and worker over the embedded store.
pub(crate) struct Node {
    engine: Engine,
    reclaimed: usize,
    stop_api: CancellationToken,
    stop_worker: CancellationToken,
    parts: TaskTracker,
}

impl Node {
    /// Opens the store and starts everything on it.
    pub(crate) async fn start(args: &DevArgs, listener: TcpListener) -> anyhow::Result<Self> {
        let random: Arc<dyn Random> = Arc::new(OsRandom::new());
        let store = open_store(args)?;
        let reclaimed = store.reclaimed();
        let config = duly_engine::Config { session_ttl: args.session_ttl };
        let engine = Engine::start(Arc::new(store), Arc::clone(&random), config);
        let node = Self {
            engine,
            reclaimed,
            stop_api: CancellationToken::new(),
            stop_worker: CancellationToken::new(),
            parts: TaskTracker::new(),
        };
        if args.concurrency > 0 {
            node.start_worker(args, Arc::clone(&random)).await?;
        }
        node.start_api(args, listener, random.next())?;
        Ok(node)
    }

    /// How many tasks an earlier process left running.
    pub(crate) fn reclaimed(&self) -> usize {
        self.reclaimed
    }

    /// Not ready, no new work, running handlers may end within [`GRACE`], then everything is
    /// handed back and written.
    pub(crate) async fn stop(self) {
        self.engine.begin_close();
        self.stop_worker.cancel();
        self.stop_api.cancel();
        self.parts.close();
        self.parts.wait().await;
        self.engine.close().await;
    }

    async fn start_worker(&self, args: &DevArgs, random: Arc<dyn Random>) -> anyhow::Result<()> {
        let mut registry = registry(Guard::new(loopback().to_vec()), args.allow_shell);
        if args.samples {
            registry = handlers::with_samples(registry);
            output::say(&samples_hint(args));
        }
        let worker = LocalWorker {
            name: format!("dev-{}", std::process::id()),
            types: registry.types(),
            queues: Vec::new(),
        };
        let source = self.engine.open_worker(worker).await.context("cannot start the worker")?;
        let config = duly_worker::Config { concurrency: args.concurrency, prefetch: PREFETCH };
        let executor = Executor::new(config, registry, source, random);
        let stop = self.stop_worker.clone();
        let follow = follow::settings(self.engine.clone(), config, executor.concurrency());
        self.parts.spawn(stop.clone().run_until_cancelled_owned(follow));
        self.parts.spawn(async move {
            let report = executor.run(stop, GRACE).await;
            tracing::info!(?report, "the worker has stopped");
        });
        Ok(())
    }

    fn start_api(
        &self,
        args: &DevArgs,
        listener: TcpListener,
        instance: u64,
    ) -> anyhow::Result<()> {
        let address = listener.local_addr().context("cannot tell the address")?;
        let config = duly_api::Config {
            allowed_hosts: HostPolicy::local(address),
            instance,
            connections: files::connections(),
            worker_concurrency: args.concurrency,
            loss_limit: args.loss_limit,
            ..duly_api::Config::default()
        };
        let router = duly_api::router(self.engine.clone(), config.clone());
        self.parts.spawn(duly_api::serve(listener, router, config, self.stop_api.clone()));
        Ok(())
    }
}

/// An engine alone on this store.
pub(crate) fn engine_on(store: Arc<dyn Store>) -> Engine {
    Engine::start(store, Arc::new(OsRandom::new()), duly_engine::Config::default())
}

/// The embedded store in this directory alone, which goes by this clock.
pub(crate) fn open_file(data: &Path, clock: Arc<dyn Clock>) -> anyhow::Result<Arc<Embedded>> {
    Ok(Arc::new(SqliteStore::open(&data.join(DATABASE), clock, Rules::default())?))
}

/// The handlers that every worker has, and the one that the operator must allow.
fn registry(guard: Guard, allow_shell: bool) -> Registry {
    let registry = handlers::builtin(guard);
    if allow_shell { registry.with("shell", Shell::new(std::env::vars_os())) } else { registry }
}

/// How to run the samples.
fn samples_hint(args: &DevArgs) -> String {
    let server = match args.listen.port() {
        8080 => String::new(),
        // Whatever port is picked is printed in a moment.
        0 => " --server URL".to_owned(),
        _ => format!(" --server http://{}", args.listen),
    };
    format!(
        "  samples   duly task run daily-report --wait{server}   (or cleanup-temp-files, data-backup)"
    )
}

/// This machine alone.
fn loopback() -> [IpNet; 2] {
    ["127.0.0.0/8", "::1/128"].map(|net| net.parse().expect("a network"))
}

fn open_store(args: &DevArgs) -> anyhow::Result<SqliteStore> {
    let clock = Arc::new(SystemClock::default());
    let rules = Rules { loss_limit: args.loss_limit };
    let store = SqliteStore::open(&args.data.join(DATABASE), clock, rules)?;
    #[cfg(feature = "planted-bugs")]
    let store = match args.planted_bug {
        Some(bug) => store.with_bug(bug),
        None => store,
    };
    Ok(store)
}
