//! Selects the concrete types and connects them. No other module does.

mod event_file;
mod follow;
mod local;
mod plan;
mod sample_schedules;
mod store;
mod worker;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use duly_api::{AuthConfig, Authenticator, HostPolicy, KeySource, Tls, TlsFiles};
use duly_core::event::Subscription;
use duly_core::limits::PREFETCH;
use duly_core::name::TenantName;
use duly_core::node::Role;
use duly_core::ports::clock::Clock;
use duly_core::ports::random::Random;
use duly_core::ports::store::{CopyProgress, JoinNode, Rules, Store};
use duly_engine::Engine;
use duly_engine::random::OsRandom;
use duly_store::clock::SystemClock;
use duly_store::postgres::PostgresStore;
pub(crate) use duly_store::postgres::database::{Database, Hold};
pub(crate) use duly_store::postgres::schema::Migration;
use duly_store::sqlite::{Restored, SqliteStore};
use duly_worker::fetch::Document;
use duly_worker::handlers::{Email, Shell, Sql};
use duly_worker::mail::{Mailer, Outbox, Templates};
use duly_worker::sql::{Source, Sources};
use duly_worker::{Guard, Registry, handlers};
use futures_util::future::BoxFuture;
use ipnet::IpNet;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use self::event_file::EventFile;
use self::local::LocalWorker;
pub(crate) use self::plan::Plan;
pub(crate) use self::store::{
    StoreLocation, StoreUrl, check_privilege, grant_rights, migrate, migrations,
};
pub(crate) use self::worker::RemoteWorker;
use crate::exit::Usage;
use crate::files;

/// The embedded store.
pub(crate) type Embedded = SqliteStore;

/// The database in a data directory.
pub(crate) const DATABASE: &str = "duly.db";
/// The folder of a data directory that takes mails.
const OUTBOX: &str = "outbox";
/// How long handlers may continue after the first signal.
const GRACE: Duration = Duration::from_secs(10);

/// A running server process: its roles over one store.
pub(crate) struct Node {
    engine: Engine,
    reclaimed: usize,
    stop_api: CancellationToken,
    stop_worker: CancellationToken,
    parts: TaskTracker,
}

impl Node {
    /// Opens the store and starts the roles. It listens only with a listener.
    pub(crate) async fn start(plan: &Plan, listener: Option<TcpListener>) -> anyhow::Result<Self> {
        let random: Arc<dyn Random> = Arc::new(OsRandom::new());
        let opened = store::open(plan).await?;
        let config = duly_engine::Config {
            session_ttl: plan.session_ttl,
            is_scheduler: plan.has_role(Role::Scheduler),
        };
        let engine = Engine::start(opened.store, Arc::clone(&random), config);
        let node = Self {
            engine,
            reclaimed: opened.reclaimed,
            stop_api: CancellationToken::new(),
            stop_worker: CancellationToken::new(),
            parts: TaskTracker::new(),
        };
        node.join(plan, listener.as_ref()).await?;
        if let Some(file) = &plan.event_file {
            node.add_event_file(file).await?;
        }
        if let Some(schedules) = &plan.schedules {
            node.engine.keep_configured_schedules(schedules.clone());
        }
        if plan.samples {
            sample_schedules::create(&node.engine).await?;
        }
        if plan.has_worker() {
            node.start_worker(plan, Arc::clone(&random)).await?;
        }
        if let Some(listener) = listener {
            node.start_api(plan, listener, random.next())?;
        }
        Ok(node)
    }

    /// How many tasks an earlier process left running.
    pub(crate) fn reclaimed(&self) -> usize {
        self.reclaimed
    }

    /// Turns readiness off, claims nothing more, lets running handlers finish within [`GRACE`],
    /// releases the rest and commits everything.
    pub(crate) async fn stop(self) {
        self.engine.begin_close();
        self.stop_worker.cancel();
        self.stop_api.cancel();
        self.parts.close();
        self.parts.wait().await;
        self.engine.close().await;
    }

    async fn join(&self, plan: &Plan, listener: Option<&TcpListener>) -> anyhow::Result<()> {
        let address = listener.map(TcpListener::local_addr).transpose();
        let node = JoinNode {
            name: plan.name.clone(),
            roles: plan.roles.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            address: address
                .context("cannot read the listener's address")?
                .map(|it| it.to_string()),
        };
        self.engine.introduce(node).await.context("cannot join the other nodes")
    }

    async fn add_event_file(&self, file: &EventFile) -> anyhow::Result<()> {
        let subscriptions = vec![Subscription::to(file.kinds)];
        let added = self.engine.add_sink(EventFile::name(), subscriptions, Arc::new(file.clone()));
        added.await.context("cannot add the file of events")
    }

    async fn start_worker(&self, plan: &Plan, random: Arc<dyn Random>) -> anyhow::Result<()> {
        let guard = guard(plan.outbound.clone(), plan.outbound_ports.clone());
        let mut registry = registry(guard, plan.allow_shell);
        if let Some(mailer) = &plan.mailer {
            registry = registry.with("email", Email::new(mailer.clone()));
        }
        if !plan.sources.is_empty() {
            registry = registry.with("sql", Sql::new(plan.sources.clone()));
        }
        if plan.samples {
            registry = handlers::with_samples(registry);
        }
        let worker = LocalWorker {
            engine: self.engine.clone(),
            name: plan.name.clone(),
            registry,
            config: duly_worker::Config { concurrency: plan.concurrency, prefetch: PREFETCH },
            random,
        };
        let source = worker.open().await.context("cannot start the worker")?;
        self.parts.spawn(worker.run(source, self.stop_worker.clone()));
        Ok(())
    }

    fn start_api(&self, plan: &Plan, listener: TcpListener, instance: u64) -> anyhow::Result<()> {
        let address = listener.local_addr().context("cannot read the listener's address")?;
        let config = duly_api::Config {
            allowed_hosts: allowed_hosts(plan, address),
            instance,
            connections: files::raise_limit(),
            worker_concurrency: if plan.has_worker() { plan.concurrency } else { 0 },
            loss_limit: plan.loss_limit,
            tenants: plan.tenants.clone(),
            auth: plan.auth.clone(),
            limits: plan.limits.clone(),
            tls: plan.tls.clone(),
            ..duly_api::Config::default()
        };
        let router = duly_api::router(self.engine.clone(), config.clone());
        self.parts.spawn(duly_api::serve(listener, router, config, self.stop_api.clone()));
        Ok(())
    }
}

/// A server that asks callers who they are may be called by any name. One that does not is kept from
/// web pages, which can make a browser call it.
fn allowed_hosts(plan: &Plan, address: SocketAddr) -> HostPolicy {
    if plan.auth.is_some() { HostPolicy::Any } else { HostPolicy::local(address) }
}

/// Reads the keys that callers sign in with.
pub(crate) fn authenticator(
    config: &AuthConfig,
    guard: &Guard,
) -> Result<Arc<Authenticator>, Usage> {
    if config.keys.is_empty() && config.jwks.is_none() {
        return Err(Usage::new(
            "auth: has no keys; add one under `keys:`, as docs/security.md shows",
        ));
    }
    let read = Authenticator::new(config, Arc::new(SystemClock::default()));
    let read = read.map_err(|bad| Usage::new(format!("auth: {bad}")))?;
    let Some(url) = &config.jwks else { return Ok(Arc::new(read)) };
    let document = Document::new(url, guard);
    let document = document.map_err(|bad| Usage::new(format!("auth: jwks: {bad}")))?;
    Ok(Arc::new(read.with_remote_keys(Box::new(PublishedKeys(document)))))
}

/// The keys that an issuer publishes.
struct PublishedKeys(Document);

impl KeySource for PublishedKeys {
    fn fetch(&self) -> BoxFuture<'_, Result<Vec<u8>, String>> {
        Box::pin(async { self.0.read().await.map_err(|error| format!("{error:#}")) })
    }
}

/// Reads the certificate of the server.
pub(crate) fn tls(files: TlsFiles) -> Result<Tls, Usage> {
    Tls::new(files).map_err(|bad| Usage::new(format!("listen.tls: {bad}")))
}

/// An engine on this store, without a worker or API.
pub(crate) fn engine_on(store: Arc<dyn Store>) -> Engine {
    Engine::start(store, Arc::new(OsRandom::new()), duly_engine::Config::default())
}

/// Opens the embedded store in this directory, with this clock.
pub(crate) fn open_file(data: &Path, clock: Arc<dyn Clock>) -> anyhow::Result<Arc<Embedded>> {
    Ok(Arc::new(SqliteStore::open(&data.join(DATABASE), clock, Rules::default())?))
}

/// Copies the database in a directory that no server uses.
pub(crate) fn back_up_directory(
    data: &Path,
    target: &Path,
    progress: impl FnMut(CopyProgress),
) -> anyhow::Result<()> {
    Ok(duly_store::sqlite::back_up(&data.join(DATABASE), target, progress)?)
}

/// Puts a backup into a directory that no server uses.
pub(crate) fn restore_directory(
    backup: &Path,
    data: &Path,
    replace: bool,
) -> anyhow::Result<Restored> {
    let now = SystemClock::default().now();
    Ok(duly_store::sqlite::restore(backup, &data.join(DATABASE), replace, now)?)
}

/// Opens the store in this database.
pub(crate) async fn open_database(url: &str) -> anyhow::Result<Arc<dyn Store>> {
    Ok(Arc::new(PostgresStore::open(url, Rules::default()).await?))
}

/// What handlers may connect to: these networks, and these ports of public addresses.
pub(crate) fn guard(nets: Vec<IpNet>, ports: Option<Vec<u16>>) -> Guard {
    let guard = Guard::new(nets);
    match ports {
        Some(ports) => guard.with_ports(ports),
        None => guard,
    }
}

/// The built-in handlers, with `shell` only if the operator allows it.
fn registry(guard: Guard, allow_shell: bool) -> Registry {
    let registry = handlers::builtin(guard);
    if allow_shell { registry.with("shell", Shell::new(std::env::vars_os())) } else { registry }
}

/// The outbox in a data directory.
pub(crate) fn outbox(data: &Path) -> Outbox {
    Outbox::new(data.join(OUTBOX))
}

/// Keeps mails in a data directory in place of sending them.
pub(crate) fn outbox_mailer(data: &Path) -> Mailer {
    let from = "Duly <duly@localhost>".parse().expect("an address");
    Mailer::outbox(from, Templates::built_in(), outbox(data))
}

/// The one source of `duly dev`: an empty database, new for every statement.
pub(crate) fn memory_source() -> Sources {
    let source = Source::new("sqlite::memory:", vec![TenantName::default_tenant()], false);
    let source = source.expect("an address");
    Sources::new([("memory".to_owned(), source)].into())
}

/// The default name of this process: host and pid.
pub(crate) fn default_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let host = if host.is_empty() { "node" } else { host };
    format!("{host}-{}", std::process::id())
}

/// The networks of this machine alone.
pub(crate) fn loopback() -> [IpNet; 2] {
    ["127.0.0.0/8", "::1/128"].map(|net| net.parse().expect("a network"))
}
