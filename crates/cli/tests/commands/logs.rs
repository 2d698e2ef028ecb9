//! A task live: `duly task logs` and `duly task watch` against a real server.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use duly_client::wire::SubmitRequest;
use duly_core::id::TaskId;
use duly_core::state::Status;
use duly_testkit::proxy::Proxy;
use duly_testkit::wait::{PATIENCE, eventually, within};
use duly_testkit::{Server, command};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use crate::DULY;

/// A server and a file that its tasks wait for.
struct World {
    server: Server,
    _worker: Option<Child>,
    gate: PathBuf,
    _data: tempfile::TempDir,
}

impl World {
    async fn start() -> anyhow::Result<Self> {
        let data = tempfile::tempdir()?;
        let server = Server::start(Path::new(DULY), data.path(), &["--allow-shell"]).await?;
        Ok(Self { server, _worker: None, gate: data.path().join("gate"), _data: data })
    }

    /// The same with the work done in another process.
    async fn start_remote() -> anyhow::Result<Self> {
        let data = tempfile::tempdir()?;
        let server = Server::start(Path::new(DULY), data.path(), &["--concurrency", "0"]).await?;
        let mut worker = Command::new(DULY);
        worker.args(["worker", "run", "--allow-shell", "--server", server.url()]);
        worker.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let worker = Some(worker.spawn()?);
        Ok(Self { server, _worker: worker, gate: data.path().join("gate"), _data: data })
    }

    /// Submits a program that prints a line, waits for the gate, and goes on with the rest.
    async fn submit(&self, rest: &str) -> anyhow::Result<TaskId> {
        let script = format!(
            "echo one; until [ -e '{}' ]; do sleep 0.05; done; {rest}",
            self.gate.display()
        );
        let payload = serde_json::value::to_raw_value(&json!({"argv": ["sh", "-c", script]}))?;
        let task = SubmitRequest {
            payload: Some(payload),
            retries: Some(0),
            ..SubmitRequest::new("shell")
        };
        Ok(self.server.client().submit(&task).await?.task_id)
    }

    fn open_the_gate(&self) -> anyhow::Result<()> {
        Ok(std::fs::write(&self.gate, "")?)
    }

    async fn status(&self, id: TaskId) -> anyhow::Result<Status> {
        Ok(self.server.client().get_task(id, None).await?.status)
    }

    /// Starts a command that goes on for a while.
    fn follow(&self, command: &[&str]) -> anyhow::Result<Following> {
        Following::start(command, self.server.url())
    }
}

pub(crate) struct Following {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// What it has said, where a test listens.
    said: Option<Lines<BufReader<ChildStderr>>>,
}

impl Following {
    pub(crate) fn start(command: &[&str], server: &str) -> anyhow::Result<Self> {
        let mut child = Command::new(DULY);
        child.args(command).args(["--server", server]).kill_on_drop(true);
        child.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn()?;
        let lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        Ok(Self { child, lines, said: None })
    }

    /// Waits until it has said this.
    pub(crate) async fn until_told(&mut self, words: &str) -> anyhow::Result<()> {
        if let Some(stderr) = self.child.stderr.take() {
            self.said = Some(BufReader::new(stderr).lines());
        }
        let said = self.said.as_mut().context("no talk")?;
        let is_told = async {
            while let Some(line) = said.next_line().await? {
                if line.contains(words) {
                    return Ok(());
                }
            }
            anyhow::bail!("it ended")
        };
        within("it says what it does", is_told).await?
    }

    /// Presses Ctrl-C.
    pub(crate) fn interrupt(&self) -> anyhow::Result<()> {
        let id = self.child.id().context("it has ended")?.try_into()?;
        Ok(kill_process(Pid::from_raw(id).context("no process has the id 0")?, Signal::INT)?)
    }

    pub(crate) async fn line(&mut self) -> anyhow::Result<Option<String>> {
        Ok(within("the next line", self.lines.next_line()).await??)
    }

    /// The lines that are left, the exit code, and what it said.
    pub(crate) async fn end(mut self) -> anyhow::Result<(Vec<String>, Option<i32>, String)> {
        let mut rest = Vec::new();
        while let Some(line) = self.line().await? {
            rest.push(line);
        }
        let output = within("the command ends", self.child.wait_with_output()).await??;
        Ok((rest, output.status.code(), String::from_utf8(output.stderr)?))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_followed_while_its_task_runs() -> anyhow::Result<()> {
    for world in [World::start().await?, World::start_remote().await?] {
        let id = world.submit("echo two; echo three").await?;
        let mut log = world.follow(&["task", "logs", &id.to_string(), "--follow"])?;
        assert_eq!(log.line().await?.as_deref(), Some("one"));
        assert_eq!(world.status(id).await?, Status::Running, "the line came before the end");
        world.open_the_gate()?;
        let (rest, code, said) = log.end().await?;
        assert_eq!((rest.as_slice(), code), (&["two".to_owned(), "three".to_owned()][..], Some(0)));
        assert!(said.contains(&format!("duly task get {id}")), "{said}");
        assert_eq!(world.status(id).await?, Status::Success);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_followed_through_a_restart_of_the_server() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let proxy = Proxy::start().await?;
    let logs =
        |id: TaskId| Following::start(&["task", "logs", &id.to_string(), "--follow"], &proxy.url());
    let mut early = logs("01920000-0000-7000-8000-000000000000".parse()?)?;
    let unreachable = within("it gives up", early.child.wait()).await??;
    assert_eq!(unreachable.code(), Some(1), "the server was not there at the start");

    let shell = ["--allow-shell"];
    let server = Server::start(Path::new(DULY), data.path(), &shell).await?;
    proxy.lead_to(server.url())?;
    let world = World { server, _worker: None, gate: data.path().join("gate"), _data: data };
    let id = world.submit("echo two").await?;
    let mut log = logs(id)?;
    assert_eq!(log.line().await?.as_deref(), Some("one"));
    let World { server, gate, _data: data, .. } = world;
    server.kill().await?;
    log.until_told("retrying").await?;
    std::fs::write(gate, "")?;
    let server = Server::start(Path::new(DULY), data.path(), &shell).await?;
    proxy.lead_to(server.url())?;
    let (rest, code, _) = log.end().await?;
    assert_eq!((rest.as_slice(), code), (&["one".to_owned(), "two".to_owned()][..], Some(0)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_dropped_of_a_log_is_told() -> anyhow::Result<()> {
    let world = World::start().await?;
    world.open_the_gate()?;
    let id = world.submit("seq 100000 199999").await?.to_string();
    let task = ["task", "watch", &id, "--server", world.server.url()];
    assert_eq!(command::run(Path::new(DULY), &task).await?.code, Some(0));
    let logs = ["task", "logs", &id, "--server", world.server.url()];
    let logs = command::run(Path::new(DULY), &logs).await?;
    let dropped = logs.stderr.lines().filter_map(|line| line.strip_prefix("… "));
    let dropped = dropped.filter_map(|line| line.strip_suffix(" bytes dropped"));
    let dropped: Vec<usize> = dropped.map(str::parse).collect::<Result<_, _>>()?;
    assert!(!dropped.is_empty(), "{}", logs.stderr);
    let whole = "one\n".len() + 100_000 * "100000\n".len();
    assert_eq!(dropped.iter().sum::<usize>() + logs.stdout.len(), whole);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_watched_until_its_outcome() -> anyhow::Result<()> {
    let world = World::start().await?;
    for (rest, code, words) in [
        ("echo two", 0, ["RUNNING", "SUCCESS", "duly task get"]),
        ("echo two; exit 3", 6, ["FAILED", "SHELL_EXIT", "duly task replay"]),
    ] {
        let id = world.submit(rest).await?;
        let mut watching = world.follow(&["task", "watch", &id.to_string()])?;
        assert_eq!(watching.line().await?.as_deref(), Some("one"));
        world.open_the_gate()?;
        let (rest, ended, said) = watching.end().await?;
        assert_eq!((rest.as_slice(), ended), (&["two".to_owned()][..], Some(code)), "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        std::fs::remove_file(&world.gate)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_after_the_end_in_every_form() -> anyhow::Result<()> {
    let world = World::start().await?;
    world.open_the_gate()?;
    let id = world.submit("printf 'two\\033[31m'").await?;
    world.server.client().get_task(id, Some(PATIENCE)).await?;
    let name = id.to_string();
    let duly = async |more: &[&str]| {
        let arguments = [&["task", "logs", &name, "--server", world.server.url()], more].concat();
        command::run(Path::new(DULY), &arguments).await
    };
    let text = duly(&[]).await?;
    assert_eq!((text.code, text.stdout.as_str()), (Some(0), "one\ntwo\u{1b}[31m\n"), "{text:?}");
    let pieces = duly(&["-o", "json"]).await?.json()?;
    assert_eq!(pieces[0]["offset"], 0, "{pieces}");
    let lines = duly(&["-o", "ndjson", "--epoch", "1"]).await?.stdout;
    let texts = lines.lines().map(|line| Ok(serde_json::from_str::<serde_json::Value>(line)?));
    let texts: anyhow::Result<Vec<_>> = texts.collect();
    let whole: String = texts?.iter().filter_map(|piece| piece["text"].as_str()).collect();
    assert_eq!(whole, text.stdout);
    let nothing = duly(&["--epoch", "7"]).await?;
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), ""), "{nothing:?}");
    assert!(nothing.stderr.contains("nothing was logged"), "{nothing:?}");
    let absent = ["task", "watch", "01920000-0000-7000-8000-000000000000"];
    let absent = [&absent[..], &["--server", world.server.url()]].concat();
    assert_eq!(command::run(Path::new(DULY), &absent).await?.code, Some(3));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_shows_while_a_sample_runs() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let server = Server::start(Path::new(DULY), data.path(), &["--samples"]).await?;
    let id = server.client().submit(&SubmitRequest::new("daily-report")).await?.task_id;
    let under_way = || async {
        let task = server.client().get_task(id, None).await.ok()?;
        task.progress.filter(|progress| progress.percent.is_some())
    };
    let progress = eventually("the task says how far it is", PATIENCE, under_way).await?;
    assert_eq!(progress.total, Some(4), "{progress:?}");
    let ended = server.client().get_task(id, Some(PATIENCE)).await?;
    let last = ended.progress.context("progress stays")?;
    assert_eq!((ended.status, last.percent), (Status::Success, Some(100)));
    let name = id.to_string();
    let shown = ["task", "get", &name, "--server", server.url()];
    let shown = command::run(Path::new(DULY), &shown).await?.stdout;
    assert!(shown.contains("4 of 4 (100%)"), "{shown}");
    Ok(())
}
