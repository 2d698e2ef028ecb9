//! `duly workflow`, and the example workflows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use duly_core::ports::random::Random;
use duly_core::ports::store::Rules;
use duly_engine::engine::LocalWorker;
use duly_engine::random::OsRandom;
use duly_engine::{Config, Engine};
use duly_store::clock::SystemClock;
use duly_store::memory::MemoryStore;
use duly_testkit::command::Ended;
use duly_worker::{Executor, Guard, handlers};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::run;

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workflows");
    folder.join(name).display().to_string()
}

/// A server in this process, with a worker beside it.
struct InProcess {
    url: String,
    stop: CancellationToken,
    loops: JoinSet<()>,
}

impl InProcess {
    async fn start() -> anyhow::Result<Self> {
        let clock = Arc::new(SystemClock::default());
        let store = Arc::new(MemoryStore::new(clock, Rules::default()));
        let random: Arc<dyn Random> = Arc::new(OsRandom::new());
        let engine = Engine::start(store, Arc::clone(&random), Config::default());
        let registry = handlers::builtin(Guard::new(Vec::new()));
        let (name, types) = ("in-process".to_owned(), registry.types());
        let source = engine.open_worker(LocalWorker { name, types, queues: Vec::new() }).await?;
        let config = duly_worker::Config { concurrency: 8, prefetch: 16 };
        let executor = Executor::new(config, registry, source, random);
        let (stop, mut loops) = (CancellationToken::new(), JoinSet::new());
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let config = duly_api::Config::default();
        let router = duly_api::router(engine, config.clone());
        loops.spawn(duly_api::serve(listener, router, config, stop.clone()));
        let shutdown = stop.clone();
        loops.spawn(async move {
            executor.run(shutdown, Duration::ZERO).await;
        });
        Ok(Self { url, stop, loops })
    }

    async fn duly(&self, arguments: &[&str]) -> anyhow::Result<Ended> {
        run(&[arguments, &["--server", &self.url]].concat()).await
    }

    async fn end(mut self) {
        self.stop.cancel();
        while self.loops.join_next().await.is_some() {}
    }
}

#[tokio::test]
async fn the_examples_run_as_they_say() -> anyhow::Result<()> {
    let server = InProcess::start().await?;
    for (name, tasks, handled) in [("etl.yaml", 4, 0), ("order.yaml", 5, 1), ("map.yaml", 6, 0)] {
        let file = example(name);
        let ended = server.duly(&["workflow", "run", &file, "--wait=30s", "-o", "json"]).await?;
        assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
        let view: Value = serde_json::from_str(&ended.stdout)?;
        assert_eq!(view["status"], "SUCCESS", "{name}: {view}");
        assert_eq!(view["handledFailures"], handled, "{name}");
        let counted: u64 =
            view["counts"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
        assert_eq!(counted, tasks, "{name}: {view}");
        let id = view["workflowId"].as_str().unwrap();
        for command in ["get", "graph", "watch"] {
            let ended = server.duly(&["workflow", command, id]).await?;
            assert_eq!(ended.code, Some(0), "{name} {command}: {ended:?}");
        }
        let retry = server.duly(&["workflow", "cancel", id]).await?;
        assert_eq!(retry.code, Some(5), "{name}: {retry:?}");
    }
    let listed = server.duly(&["workflow", "list", "--status", "success", "-o", "id"]).await?;
    assert_eq!(listed.stdout.lines().count(), 3, "{listed:?}");
    server.end().await;
    Ok(())
}

#[tokio::test]
async fn a_failed_workflow_ends_like_a_failed_task() -> anyhow::Result<()> {
    let server = InProcess::start().await?;
    let folder = tempfile::tempdir()?;
    let file =
        write(folder.path(), "tasks: {a: {type: flaky, retries: 0, payload: {failTimes: 1}}}");
    let ended = server.duly(&["workflow", "run", &file, "--wait=30s", "-o", "id"]).await?;
    assert_eq!(ended.code, Some(6), "{ended:?}");
    let id = ended.stdout.trim().to_owned();
    let retried = server.duly(&["workflow", "retry", &id]).await?;
    assert_eq!(retried.code, Some(0), "{retried:?}");
    server.end().await;
    Ok(())
}

fn write(folder: &Path, text: &str) -> String {
    let file: PathBuf = folder.join("workflow.yaml");
    std::fs::write(&file, text).expect("the folder can be written");
    file.display().to_string()
}

#[tokio::test]
async fn files_are_checked_with_line_and_column() -> anyhow::Result<()> {
    for name in ["etl.yaml", "order.yaml", "map.yaml"] {
        let ended = run(&["workflow", "validate", &example(name)]).await?;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for format in ["dot", "mermaid", "svg", "text"] {
            let ended = run(&["workflow", "graph", &example(name), "-o", format]).await?;
            assert_eq!(ended.code, Some(0), "{ended:?}");
        }
    }
    let folder = tempfile::tempdir()?;
    for (text, place) in [
        ("tasks:\n  a:\n    type: echo\n    dependsOn: [b]\n", ":4:5: /tasks/a/dependsOn/0"),
        ("tasks:\n  a: {type: echo, oops: 1}\n", ":2:19: /tasks/a/oops"),
        ("tasks: [\n", ":"),
    ] {
        let file = write(folder.path(), text);
        let ended = run(&["workflow", "validate", &file]).await?;
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains(&format!("{file}{place}")), "{ended:?}");
    }
    let nothing = run(&["workflow", "graph", "nothing.yaml"]).await?;
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    Ok(())
}
