//! `duly worker run`: the built-in handlers in a process of their own; and `duly worker list|drain`.

use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use duly_client::wire::SubmitRequest;
use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_testkit::Server;
use duly_testkit::command::{self, Ended};
use duly_testkit::wait::{PATIENCE, eventually, within};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

use crate::DULY;

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

    /// Waits until it has registered; returns its id.
    async fn registered(&mut self) -> anyhow::Result<String> {
        let line = self.says("  session  ").await?;
        self.says("(Ctrl-C stops)").await?;
        Ok(line.split_whitespace().last().context("no id")?.to_owned())
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
    worker.says("retrying").await?;
    worker.signal(Signal::INT)?;
    worker.says("before the server could be reached").await?;
    assert_eq!(worker.code().await?, Some(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_work_says_why() -> anyhow::Result<()> {
    for (extra, code, why) in [
        (["--type", "email"], 1, "there is no built-in handler for `email`; use one of echo"),
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

/// Runs a command of the client against the server.
async fn duly(server: &Server, arguments: &[&str]) -> anyhow::Result<Ended> {
    let line = [arguments, &["--server", server.url()]].concat();
    command::run(Path::new(DULY), &line).await
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_listed_with_what_they_serve() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = idle_server(data.path()).await?;
    let listed = duly(&server, &["worker", "list"]).await?;
    assert_eq!((listed.code, listed.stdout.as_str()), (Some(0), ""), "{listed:?}");
    assert!(listed.stderr.contains("next: duly worker run"), "{listed:?}");

    let narrow = ["--type", "echo", "--type", "sleep", "--queue", "mail"];
    let mut worker = Worker::start(server.url(), &narrow)?;
    let id = worker.registered().await?;
    let listed = duly(&server, &["worker", "list", "-o", "id"]).await?;
    assert_eq!((listed.code, listed.line()?), (Some(0), id.as_str()), "{listed:?}");
    let listed = duly(&server, &["worker", "list", "-o", "json"]).await?.json()?;
    assert_eq!(listed["items"][0]["workerId"], id.as_str(), "{listed}");
    let listed = duly(&server, &["worker", "list"]).await?;
    let (header, line) = listed.stdout.trim_end().split_once('\n').context("two lines")?;
    let header: Vec<_> = header.split_whitespace().collect();
    let names = ["ID", "NAME", "HOME", "STATE", "LEASES", "QUEUES", "TYPES", "LAST", "HEARTBEAT"];
    assert_eq!(header, names);
    let cells: Vec<_> = line.split_whitespace().collect();
    assert_eq!(cells[..7], [&id, "w1", "remote", "active", "0", "mail", "echo,sleep"], "{line}");
    assert!(line.ends_with(" s ago"), "{line}");
    let line = ["worker", "list", "--server", server.url()];
    let listed = command::run_with(Path::new(DULY), &line, &[("COLUMNS", "80")]).await?;
    assert!(listed.stdout.lines().all(|line| line.chars().count() <= 80), "{listed:?}");
    assert!(listed.stdout.contains(&id) && listed.stdout.contains(" active "), "{listed:?}");

    worker.signal(Signal::TERM)?;
    assert_eq!(worker.code().await?, Some(0));
    let listed = duly(&server, &["worker", "list", "-o", "id"]).await?;
    assert_eq!((listed.code, listed.stdout.as_str()), (Some(0), ""), "{listed:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_worker_takes_no_task_until_it_is_resumed() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = idle_server(data.path()).await?;
    let mut worker = Worker::start(server.url(), &[])?;
    let id = worker.registered().await?;
    running(&server).await?;
    let drained = duly(&server, &["worker", "drain", &id]).await?;
    assert_eq!(drained.code, Some(0), "{drained:?}");
    assert!(drained.stdout.contains(" draining  1 "), "{drained:?}");
    assert!(drained.stderr.contains("finishes 1 task;"), "{drained:?}");
    assert!(drained.stderr.contains(&format!("next: duly worker drain {id} --resume")));
    let listed = duly(&server, &["worker", "list"]).await?;
    assert!(listed.stdout.contains(" draining "), "{listed:?}");

    let task = duly(&server, &["task", "run", "echo", "-o", "id"]).await?.line()?.to_owned();
    let waited = duly(&server, &["task", "get", &task, "--wait=1s"]).await?;
    assert_eq!(waited.code, Some(7), "{waited:?}");
    let got = duly(&server, &["task", "get", &task, "-o", "json"]).await?.json()?;
    assert_eq!(got["status"], "PENDING", "{got}");
    let explained = duly(&server, &["task", "explain", &task]).await?;
    assert!(explained.stdout.contains("drain: 1"), "{explained:?}");
    assert!(explained.stderr.contains("duly worker drain ID --resume"), "{explained:?}");

    let resumed = duly(&server, &["worker", "drain", &id, "--resume", "-o", "json"]).await?;
    assert_eq!(resumed.json()?["state"], "active", "{resumed:?}");
    let done = duly(&server, &["task", "get", &task, "--wait=60s"]).await?;
    assert_eq!(done.code, Some(0), "{done:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_not_there_cannot_be_drained() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = idle_server(data.path()).await?;
    let absent = "01920000-0000-7000-8000-000000000000";
    let refused = duly(&server, &["worker", "drain", absent]).await?;
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("there is no such worker"), "{refused:?}");
    let refused = duly(&server, &["worker", "drain", &absent[..13]]).await?;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    Ok(())
}
