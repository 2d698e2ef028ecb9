//! Duly inside a Rust program: a SQLite file, a handler of its own, one task, a clean end.
//!
//! `cargo run -p duly-example-embedded`
#![expect(clippy::print_stdout, reason = "the result is what this program is for")]

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use duly_core::name::TenantName;
use duly_core::ports::{random::Random, store::Rules};
use duly_core::submit::Draft;
use duly_engine::{Engine, engine::LocalWorker, random::OsRandom};
use duly_store::clock::SystemClock;
use duly_store::sqlite::SqliteStore;
use duly_worker::{Config, Context, Executor, Handler, HandlerError, Output, Registry};
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

#[derive(Deserialize)]
struct Text {
    text: String,
}

/// Runs tasks of the type `word-count`.
struct WordCount;

#[async_trait]
impl Handler for WordCount {
    async fn run(&self, context: Context) -> Result<Output, HandlerError> {
        let Text { text } = context.payload()?;
        Output::json(&text.split_whitespace().count())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // The store. A program of yours keeps its file: tasks outlive the process.
    let folder = tempfile::tempdir()?;
    let clock = Arc::new(SystemClock::default());
    let store = SqliteStore::open(&folder.path().join("duly.db"), clock, Rules::default())?;
    let random: Arc<dyn Random> = Arc::new(OsRandom::new());
    let engine =
        Engine::start(Arc::new(store), Arc::clone(&random), duly_engine::Config::default());

    // The worker.
    let registry = Registry::new().with("word-count", WordCount);
    let (name, types) = ("embedded".to_owned(), registry.types());
    let source = engine.open_worker(LocalWorker { name, types, queues: Vec::new() }).await?;
    let config = Config { concurrency: 8, prefetch: 16 };
    let executor = Executor::new(config, registry, source, random);
    let stop = CancellationToken::new();
    let mut worker = JoinSet::new();
    worker.spawn(executor.run(stop.clone(), Duration::from_secs(10)));

    // A task. It is durable once `submit` has answered.
    let tenant = TenantName::default_tenant();
    let draft = Draft {
        task_type: Some("word-count".to_owned()),
        payload: Some(r#"{"text": "one two three"}"#.to_owned()),
        ..Draft::default()
    };
    let spec = draft.check().map_err(|fields| anyhow::anyhow!("{fields:?}"))?;
    let answer = engine.submit(&tenant, vec![spec]).await?.pop().context("one task, one answer")?;
    let id = answer?.task.id;
    let task = engine.wait(&tenant, id, Duration::from_secs(10)).await?.context("no such task")?;
    println!("{}: {}", task.status, task.result.as_deref().unwrap_or("no result"));

    // The end: handlers may finish, what has not started goes back to the store.
    stop.cancel();
    worker.join_all().await;
    engine.close().await;
    Ok(())
}
