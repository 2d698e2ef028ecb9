//! `duly worker run`: the built-in handlers in a process of their own.

use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use duly_client::wire::SubmitRequest;
use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_testkit::wait::{PATIENCE, eventually, within};
use duly_testkit::{Server, command};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

const DULY: &str = env!("CARGO_BIN_EXE_duly");

/// A server that runs no task itself.
async fn idle_server(data: &Path) -> anyhow::Result<Server> {
    Server::start(Path::new(DULY), data, &["--concurrency", "0"]).await
}

/// A `duly worker run`; dropping it kills it.
struct Worker {
    child: Child,
    said: Lines<BufReader<ChildStderr>>,
}

impl Worker {
    fn start(server: &str, extra: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(DULY);
        command.args(["worker", "run", "--name", "w1", "--server", server]).args(extra);
        command.env_remove("RUST_LOG").stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn()?;
        let said = BufReader::new(child.stderr.take().context("no standard error")?).lines();
        Ok(Self { child, said })
    }

    /// Waits for a line that holds this text, and returns it.
    async fn says(&mut self, text: &str) -> anyhow::Result<String> {
        loop {
            let line = within(text, self.said.next_line()).await??;
            let line = line.with_context(|| format!("the worker ended without {text:?}"))?;
            if line.contains(text) {
                return Ok(line);
            }
        }
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let id = i32::try_from(self.child.id().context("the worker has ended")?)?;
        Ok(kill_process(Pid::from_raw(id).context("no process has the id 0")?, signal)?)
    }

    async fn code(&mut self) -> anyhow::Result<Option<i32>> {
        Ok(within("the worker ends", self.child.wait()).await??.code())
    }
}

/// A task of an hour that has begun.
async fn running(server: &Server) -> anyhow::Result<TaskId> {
    let payload = serde_json::value::to_raw_value(&serde_json::json!({"seconds": 3600}))?;
    let task = SubmitRequest { payload: Some(payload), ..SubmitRequest::new("sleep") };
    let id = server.client().submit(&task).await?.task_id;
    let runs = || async {
        let task = server.client().get_task(id, None).await.ok()?;
        (task.status == Status::Running).then_some(id)
    };
    eventually("the task runs", PATIENCE, runs).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_runs_tasks_and_hands_back_the_rest_when_it_is_stopped() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = idle_server(data.path()).await?;
    let mut worker = Worker::start(server.url(), &["--grace", "0s"])?;
    worker.says("(Ctrl-C stops)").await?;
    let done = server.client().submit(&SubmitRequest::new("echo")).await?.task_id;
    let done = server.client().get_task(done, Some(PATIENCE)).await?;
    assert_eq!((done.status, done.worker.as_deref()), (Status::Success, Some("w1")));

    let long = running(&server).await?;
    worker.signal(Signal::TERM)?;
    // It may not have heard of the lease yet; then the end of its session gives it back.
    worker.says("stopped: ").await?;
    assert_eq!(worker.code().await?, Some(0));
    let long = server.client().get_task(long, None).await?;
    assert_eq!((long.status, long.attempt, long.losses), (Status::Pending, 0, 0), "{long:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_stops_a_worker_at_once() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = idle_server(data.path()).await?;
    let mut worker = Worker::start(server.url(), &["--grace", "1h"])?;
    worker.says("(Ctrl-C stops)").await?;
    running(&server).await?;
    worker.signal(Signal::INT)?;
    worker.says("stopping").await?;
    worker.signal(Signal::INT)?;
    worker.says("stopped at once").await?;
    assert_eq!(worker.code().await?, Some(1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_keeps_trying_while_its_server_is_away() -> anyhow::Result<()> {
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let mut worker = Worker::start(&format!("http://{gone}"), &[])?;
    worker.says("cannot reach").await?;
    worker.says("trying again").await?;
    worker.signal(Signal::INT)?;
    worker.says("before the server could be reached").await?;
    assert_eq!(worker.code().await?, Some(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_work_says_why() -> anyhow::Result<()> {
    for (extra, code, why) in [
        (["--type", "email"], 1, "there is no built-in handler for `email`; there are echo"),
        (["--server", "localhost:8080"], 2, "is not an address of a Duly server"),
        (["--concurrency", "0"], 2, "must be a number from 1 to"),
        (["--allow-net", "everything"], 2, "everything"),
    ] {
        let line = ["worker", "run", extra[0], extra[1]];
        let ended = command::run(Path::new(DULY), &line).await?;
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.contains(why), "{ended:?}");
    }
    Ok(())
}
