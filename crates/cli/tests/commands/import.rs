//! `duly task import` with the real program: every line becomes one task, whatever happens on the
//! way.

mod front;
mod large;
mod refusals;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use duly_client::Client;
use duly_testkit::Server;
use duly_testkit::command::{self, Ended};
use duly_testkit::proxy::Proxy;
use duly_testkit::wait::{PATIENCE, eventually, within};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use crate::DULY;

/// A server that runs no task, a wire to it, and a folder.
struct World {
    server: Server,
    proxy: Proxy,
    folder: tempfile::TempDir,
    data: tempfile::TempDir,
}

/// No worker: tasks wait.
const IDLE: [&str; 2] = ["--concurrency", "0"];

impl World {
    async fn start() -> anyhow::Result<Self> {
        let (folder, data) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let server = Server::start(Path::new(DULY), data.path(), &IDLE).await?;
        let proxy = Proxy::start().await?;
        proxy.lead_to(server.url())?;
        Ok(Self { server, proxy, folder, data })
    }

    /// Kills the server and starts it again on the same data.
    async fn with_server_killed(self) -> anyhow::Result<Self> {
        let Self { server, proxy, folder, data } = self;
        server.kill().await?;
        proxy.cut();
        let server = Server::start(Path::new(DULY), data.path(), &IDLE).await?;
        proxy.lead_to(server.url())?;
        Ok(Self { server, proxy, folder, data })
    }

    fn file(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// An import over the wire; it can be killed.
    fn spawn(&self, arguments: &[&str]) -> anyhow::Result<Child> {
        spawn(&self.proxy, arguments)
    }

    /// An import over the wire, to its end.
    async fn import(&self, file: &Path, extra: &[&str]) -> anyhow::Result<Ended> {
        self.import_to(&self.proxy.url(), file, extra).await
    }

    /// An import to another address, to its end.
    async fn import_to(&self, url: &str, file: &Path, extra: &[&str]) -> anyhow::Result<Ended> {
        let line = [&["task", "import", plain(file), "--server", url], extra].concat();
        let ended = command::run(Path::new(DULY), &line).await?;
        assert!(!ended.stderr.contains("panicked"), "{ended:?}");
        Ok(ended)
    }

    /// Waits until the server holds at least so many tasks.
    async fn holds(&self, count: usize) -> anyhow::Result<()> {
        let held = || async {
            let numbers = numbers(self.server.client()).await.ok()?;
            (numbers.len() >= count).then_some(())
        };
        eventually("the tasks are there", PATIENCE, held).await
    }
}

fn spawn(proxy: &Proxy, arguments: &[&str]) -> anyhow::Result<Child> {
    let mut command = Command::new(DULY);
    command.args(["task", "import", "--server", &proxy.url()]).args(arguments);
    command.env_remove("RUST_LOG").stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command.kill_on_drop(true).spawn()?)
}

fn plain(path: &Path) -> &str {
    path.to_str().expect("a temporary path is plain")
}

/// So many lines, each with its number.
fn lines(numbers: impl Iterator<Item = usize>) -> String {
    let line = |number| format!("{{\"type\":\"echo\",\"payload\":{number}}}\n");
    numbers.map(line).collect()
}

/// The numbers of all tasks that the server holds, in order.
async fn numbers(client: &Client) -> anyhow::Result<Vec<usize>> {
    let (mut numbers, mut cursor) = (Vec::new(), None);
    loop {
        let page = client.list_tasks("", Some(200), cursor.as_deref()).await?;
        for task in page.items {
            numbers.push(task.payload.get().parse()?);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            numbers.sort_unstable();
            return Ok(numbers);
        }
    }
}

/// How many lines are tasks now, by this import or before it.
fn imported(ended: &Ended) -> anyhow::Result<u64> {
    let sum = ended.json()?;
    let count = |name: &str| sum[name].as_u64().with_context(|| format!("no {name}: {sum}"));
    Ok(count("submitted")? + count("existing")?)
}

async fn ended(child: Child) -> anyhow::Result<Ended> {
    let output = within("the import ends", child.wait_with_output()).await??;
    Ok(Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout)?,
        stderr: String::from_utf8(output.stderr)?,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_becomes_one_task_and_the_second_start_does_nothing() -> anyhow::Result<()> {
    let world = World::start().await?;
    let file = world.file("tasks.ndjson", &lines(0..5000))?;
    let first = world.import(&file, &[]).await?;
    assert_eq!(first.code, Some(0), "{first:?}");
    assert_eq!(first.line()?, "imported 5000 tasks, rejected 0 lines");
    assert!(first.stderr.contains("next: duly task list"), "{first:?}");
    assert!(numbers(world.server.client()).await?.into_iter().eq(0..5000));

    let second = world.import(&file, &["-o", "json"]).await?;
    assert_eq!(second.code, Some(0), "{second:?}");
    assert!(second.stderr.contains("nothing left to import"), "{second:?}");
    let sum = second.json()?;
    assert_eq!((&sum["submitted"], &sum["complete"]), (&5000.into(), &true.into()), "{sum}");
    std::fs::remove_file(world.folder.path().join("tasks.ndjson.import"))?;
    let third = world.import(&file, &["-o", "id"]).await?;
    assert_eq!((third.code, third.stdout.lines().count()), (Some(0), 5000), "{}", third.stderr);
    assert!(numbers(world.server.client()).await?.into_iter().eq(0..5000), "known by their keys");
    std::fs::remove_file(world.folder.path().join("tasks.ndjson.import"))?;
    let fourth = world.import(&file, &[]).await?;
    assert_eq!(
        (fourth.code, fourth.line()?),
        (Some(0), "imported 0 tasks, 5000 were already there, rejected 0 lines")
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_import_goes_on_without_doubles_or_gaps() -> anyhow::Result<()> {
    let world = World::start().await?;
    let file = world.file("tasks.ndjson", &lines(0..5000))?;
    // Whatever is taken, the importer does not learn of it.
    world.proxy.reset_next(1_000_000);
    let mut importer = world.spawn(&[plain(&file)])?;
    world.holds(1000).await?;
    importer.start_kill()?;
    within("the importer is dead", importer.wait()).await??;
    assert!(numbers(world.server.client()).await?.len() < 5000, "it was killed in the middle");
    world.proxy.stop_resets();
    // And once while answers arrive, at whatever point that is.
    let mut importer = world.spawn(&[plain(&file)])?;
    world.holds(3000).await?;
    importer.start_kill()?;
    within("the importer is dead", importer.wait()).await??;
    let ended = world.import(&file, &["-o", "json"]).await?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(imported(&ended)?, 5000, "{ended:?}");
    assert!(numbers(world.server.client()).await?.into_iter().eq(0..5000));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_stream_goes_on_where_it_ended() -> anyhow::Result<()> {
    let world = World::start().await?;
    let checkpoint = world.folder.path().join("checkpoint");
    let arguments = ["-", "--name", "mine", "--checkpoint", plain(&checkpoint)];
    let mut importer = world.spawn(&arguments)?;
    let mut stdin = importer.stdin.take().context("no standard input")?;
    stdin.write_all(lines(0..2500).as_bytes()).await?;
    // They are sent although more may come.
    world.holds(2500).await?;
    let id = i32::try_from(importer.id().context("the import has ended")?)?;
    kill_process(Pid::from_raw(id).context("no process has the id 0")?, Signal::INT)?;
    let first = ended(importer).await?;
    assert_eq!(first.code, Some(1), "{first:?}");
    assert!(first.stderr.contains("stopped after line 2500; next: duly"), "{first:?}");
    drop(stdin);

    let mut importer = world.spawn(&arguments)?;
    let mut stdin = importer.stdin.take().context("no standard input")?;
    stdin.write_all(lines(0..5000).as_bytes()).await?;
    drop(stdin);
    let second = ended(importer).await?;
    assert_eq!(second.code, Some(0), "{second:?}");
    assert!(second.stderr.contains("continuing after line 2500"), "{second:?}");
    assert!(numbers(world.server.client()).await?.into_iter().eq(0..5000));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_a_name_is_new_each_time() -> anyhow::Result<()> {
    let world = World::start().await?;
    for _ in 0..2 {
        let mut importer = world.spawn(&["-"])?;
        let mut stdin = importer.stdin.take().context("no standard input")?;
        stdin.write_all(lines(0..2).as_bytes()).await?;
        drop(stdin);
        let ended = ended(importer).await?;
        assert_eq!((ended.code, ended.line()?), (Some(0), "imported 2 tasks, rejected 0 lines"));
    }
    assert_eq!(numbers(world.server.client()).await?, [0, 0, 1, 1]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_lines_are_named_and_do_not_stop_the_others() -> anyhow::Result<()> {
    let world = World::start().await?;
    let bad = "no json\n\n{\"type\":\"echo!\"}\n[]\n{\"type\":\"echo\",\"nonsense\":1}\n";
    let text = format!("{}{bad}{}", lines(0..3), lines(3..5));
    let file = world.file("tasks.ndjson", &text)?;
    let ended = world.import(&file, &[]).await?;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.line()?, "imported 5 tasks, rejected 4 lines");
    let list = std::fs::read_to_string(world.folder.path().join("tasks.ndjson.rejected"))?;
    let mut found = Vec::new();
    for entry in list.lines() {
        let entry: serde_json::Value = serde_json::from_str(entry)?;
        let line = entry["line"].as_u64().context("no line")?;
        assert!(ended.stderr.contains(&format!("line {line} was rejected: ")), "{ended:?}");
        found.push((line, entry["problem"]["code"].as_str().context("no code")?.to_owned()));
    }
    let invalid = |line| (line, "INVALID_FIELDS".to_owned());
    let expected = [(4, "MALFORMED_JSON".to_owned()), invalid(6), invalid(7), invalid(8)];
    assert_eq!(found, expected);
    assert!(numbers(world.server.client()).await?.into_iter().eq(0..5));
    let again = world.import(&file, &[]).await?;
    assert_eq!(again.code, Some(1), "the lines are still not imported: {again:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strict_import_stops_at_a_bad_line_and_goes_on_when_it_is_mended() -> anyhow::Result<()> {
    let world = World::start().await?;
    let text = format!("{}oops\n{}", lines(0..2), lines(3..1500));
    let file = world.file("tasks.ndjson", &text)?;
    let ended = world.import(&file, &["--strict"]).await?;
    assert_eq!((ended.code, ended.line()?), (Some(1), "imported 2 tasks, rejected 0 lines"));
    assert!(ended.stderr.contains("line 3 was rejected"), "{ended:?}");
    let name = ended.stderr.trim().split("--name ").nth(1).context("no name")?;

    world.file("tasks.ndjson", &lines(0..1500))?;
    let refused = world.import(&file, &["--strict"]).await?;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains(&format!("--name {name}")), "{refused:?}");
    let ended = world.import(&file, &["--strict", "--name", name, "-o", "json"]).await?;
    assert_eq!((ended.code, imported(&ended)?), (Some(0), 1500), "{ended:?}");
    assert!(numbers(world.server.client()).await?.into_iter().eq(0..1500));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_is_waited_for() -> anyhow::Result<()> {
    let world = World::start().await?;
    let away = Proxy::start().await?;
    let file = world.file("tasks.ndjson", &lines(0..10))?;
    let mut importer = spawn(&away, &[plain(&file)])?;
    let mut stderr = importer.stderr.take().context("no standard error")?;
    let mut said = String::new();
    while !said.contains("retrying") {
        let mut buffer = [0; 4096];
        let count = within("it says so", stderr.read(&mut buffer)).await??;
        assert!(count > 0, "it ended: {said}");
        said.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    away.lead_to(world.server.url())?;
    stderr.read_to_string(&mut said).await?;
    assert_eq!(said.matches("retrying").count(), 1, "once: {said}");
    assert_eq!(ended(importer).await?.code, Some(0), "{said}");
    assert!(numbers(world.server.client()).await?.into_iter().eq(0..10));
    Ok(())
}
