//! Nodes in this process on a database of their own, one of them with its interface over HTTP, and
//! applications beside them.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use duly_api::HostPolicy;
use duly_client::Client;
use duly_core::id::TaskId;
use duly_core::ports::store::Rules;
use duly_engine::Engine;
use duly_engine::engine::LocalWorker;
use duly_engine::random::OsRandom;
use duly_store::clock::SystemClock;
use duly_store::postgres::PostgresStore;
use duly_store::postgres::scratch::{self, Scratch};
use duly_worker::{Context, Executor, Handler, HandlerError, Output, Registry};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;
use tokio_util::sync::CancellationToken;

pub(crate) struct World {
    pub(crate) engines: Vec<Engine>,
    pub(crate) rest: Client,
    /// Workers and the interface; they end with it.
    parts: JoinSet<()>,
    // The nodes go before the database does.
    scratch: Arc<Scratch>,
}

impl World {
    /// So many nodes without workers; nothing if there is no server to test on.
    pub(crate) async fn start(nodes: usize) -> Option<Self> {
        let scratch = Scratch::new(&scratch::server()?, Arc::new(SystemClock::default())).await;
        Some(Self::on(Arc::new(scratch), nodes).await)
    }

    /// One more node on the same database, with an interface of its own.
    pub(crate) async fn beside(&self) -> Self {
        Self::on(Arc::clone(&self.scratch), 1).await
    }

    async fn on(scratch: Arc<Scratch>, nodes: usize) -> Self {
        let mut engines = Vec::new();
        for _ in 0..nodes {
            let store = PostgresStore::open(&scratch.url(), Rules::default()).await.unwrap();
            let random = Arc::new(OsRandom::new());
            engines.push(Engine::start(Arc::new(store), random, duly_engine::Config::default()));
        }
        let mut parts = JoinSet::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let allowed_hosts = HostPolicy::local(address);
        let config = duly_api::Config { allowed_hosts, ..duly_api::Config::default() };
        let router = duly_api::router(engines[0].clone(), config.clone());
        parts.spawn(duly_api::serve(listener, router, config, CancellationToken::new()));
        let rest = Client::new(&format!("http://{address}"), None).unwrap();
        Self { engines, rest, parts, scratch }
    }

    /// Adds a worker to every node.
    pub(crate) async fn work(&mut self, registry: &Registry) {
        for (number, engine) in self.engines.iter().enumerate() {
            let (name, types) = (format!("worker-{number}"), registry.types());
            let worker = LocalWorker { name, types, queues: Vec::new() };
            let source = engine.open_worker(worker).await.unwrap();
            let config = duly_worker::Config { concurrency: 8, prefetch: 8 };
            let random = Arc::new(OsRandom::new());
            let executor = Executor::new(config, registry.clone(), source, random);
            self.parts.spawn(async move {
                executor.run(CancellationToken::new(), Duration::ZERO).await;
            });
        }
    }

    /// A connection of an application.
    pub(crate) async fn connect(&self) -> App {
        App::connect(&self.scratch.url()).await
    }

    /// Where applications connect.
    pub(crate) fn url(&self) -> String {
        self.scratch.url()
    }
}

/// A connection of an application.
pub(crate) struct App {
    client: tokio_postgres::Client,
    _driver: JoinSet<()>,
}

impl App {
    pub(crate) async fn connect(url: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        let mut driver = JoinSet::new();
        driver.spawn(async move { drop(connection.await) });
        Self { client, _driver: driver }
    }

    /// Submits with arguments as SQL.
    pub(crate) async fn submit(&self, arguments: &str) -> Result<TaskId, tokio_postgres::Error> {
        let select = format!("SELECT duly.submit({arguments})::text");
        let row = self.client.query_one(&select, &[]).await?;
        Ok(row.get::<_, String>(0).parse().unwrap())
    }

    /// The number that a query answers with.
    pub(crate) async fn count(&self, query: &str) -> i64 {
        self.client.query_one(query, &[]).await.unwrap().get(0)
    }

    /// The text that a query answers with.
    pub(crate) async fn text(&self, query: &str) -> String {
        self.client.query_one(query, &[]).await.unwrap().get(0)
    }
}

impl Deref for App {
    type Target = tokio_postgres::Client;

    fn deref(&self) -> &Self::Target {
        &self.client
    }
}

impl DerefMut for App {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.client
    }
}

/// Tells which tasks it has run.
pub(crate) struct Telling(pub(crate) mpsc::UnboundedSender<TaskId>);

#[async_trait]
impl Handler for Telling {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        self.0.send(context.task()).ok();
        Ok(Output::none())
    }
}
