//! The example workers in other languages, against a real server.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use duly_client::wire::{SubmitRequest, TaskView};
use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_testkit::wait::{PATIENCE, eventually, within};
use duly_testkit::{Server, report};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::DULY;

/// A short one, so that a stopped worker is soon taken for dead.
const SESSION_TTL: &str = "1s";

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// An example worker; dropping it kills it.
struct Worker(Child);

impl Worker {
    /// Starts it, or says that its interpreter is missing.
    fn start(interpreter: &str, file: &str, server: &str) -> anyhow::Result<Option<Self>> {
        let mut command = Command::new(interpreter);
        command.arg(example(file)).arg(server).stdin(Stdio::null()).kill_on_drop(true);
        match command.spawn() {
            Ok(child) => Ok(Some(Self(child))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let remedy = "install Python 3.11 and Node.js 20";
                report::skip(&format!("examples/{file}: {interpreter} is missing"), remedy)?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let id = i32::try_from(self.0.id().context("the worker has ended")?)?;
        Ok(kill_process(Pid::from_raw(id).context("no process has the id 0")?, signal)?)
    }
}

async fn submit(server: &Server, payload: &Value) -> anyhow::Result<TaskId> {
    let payload = Some(serde_json::value::to_raw_value(payload)?);
    let task = SubmitRequest { payload, retries: Some(1), ..SubmitRequest::new("word-count") };
    Ok(server.client().submit(&task).await?.task_id)
}

async fn ended(server: &Server, id: TaskId) -> anyhow::Result<TaskView> {
    Ok(server.client().get_task(id, Some(PATIENCE)).await?)
}

async fn assert_counts_words(server: &Server) -> anyhow::Result<()> {
    let id = submit(server, &json!({"text": "to be  or not"})).await?;
    let task = ended(server, id).await?;
    assert_eq!(task.status, Status::Success, "{task:?}");
    let result: Value = serde_json::from_str(task.result.context("no result")?.get())?;
    assert_eq!(result, json!({"words": 4}));
    Ok(())
}

/// Results, retries, a new session after a pause, and a clean end.
async fn try_worker(interpreter: &str, file: &str) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let flags = ["--concurrency", "0", "--session-ttl", SESSION_TTL];
    let server = Server::start(Path::new(DULY), data.path(), &flags).await?;
    let Some(mut worker) = Worker::start(interpreter, file, server.url())? else { return Ok(()) };
    assert_counts_words(&server).await?;

    let mut many = Vec::new();
    for words in 1..=50 {
        many.push(submit(&server, &json!({"text": "word ".repeat(words)})).await?);
    }
    for (words, id) in (1..).zip(many) {
        let task = ended(&server, id).await?;
        let result: Value = serde_json::from_str(task.result.context("no result")?.get())?;
        assert_eq!((result, task.losses), (json!({"words": words}), 0));
    }

    let id = submit(&server, &json!({"no text": 1})).await?;
    let task = ended(&server, id).await?;
    assert_eq!((task.status, task.attempt), (Status::Failed, 2), "{task:?}");

    worker.signal(Signal::STOP)?;
    let is_taken_for_dead = || async {
        let answer = server.client().submit(&SubmitRequest::new("word-count")).await.ok()?;
        (!answer.warnings.is_empty()).then_some(())
    };
    eventually("the paused worker is taken for dead", PATIENCE, is_taken_for_dead).await?;
    worker.signal(Signal::CONT)?;
    assert_counts_words(&server).await?;

    worker.signal(Signal::TERM)?;
    let status = within("the worker ends", worker.0.wait()).await??;
    assert_eq!(status.code(), Some(0), "{status}");
    let answer = server.client().submit(&SubmitRequest::new("word-count")).await?;
    assert_eq!(answer.warnings.len(), 1, "the worker has left its session open");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_worker_works() -> anyhow::Result<()> {
    try_worker("python3", "worker.py").await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_worker_works() -> anyhow::Result<()> {
    try_worker("node", "worker.mjs").await
}

#[test]
fn examples_are_short() {
    for file in ["worker.py", "worker.mjs"] {
        let text = std::fs::read_to_string(example(file)).expect("the example");
        assert!(text.lines().count() <= 60, "{file} has {} lines", text.lines().count());
    }
}
