//! Worker processes of the harness.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use duly_core::id::SessionId;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use crate::effects::Effect;
use crate::journal::{self, Line};
use crate::wait::within;

/// A running worker process; dropping it kills it.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    /// Kept apart: waiting for a child closes the one that it has.
    stdin: Option<ChildStdin>,
    pid: Pid,
    name: String,
    session: SessionId,
}

impl Worker {
    /// Starts a worker and waits until it has its session. `beside` is a binary of the same
    /// build, next to which the worker's lies.
    pub async fn start(
        beside: &Path,
        server: &str,
        effects: &Path,
        name: &str,
        concurrency: usize,
    ) -> anyhow::Result<Self> {
        Self::start_as(None, beside, server, effects, name, concurrency).await
    }

    /// The same with a token.
    pub async fn start_as(
        token: Option<&str>,
        beside: &Path,
        server: &str,
        effects: &Path,
        name: &str,
        concurrency: usize,
    ) -> anyhow::Result<Self> {
        let program = program(beside)?;
        let mut command = Command::new(program);
        command.arg(server).arg(effects).arg(name).arg(concurrency.to_string()).args(token);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("cannot start a worker")?;
        let id = i32::try_from(child.id().context("the worker has ended")?)?;
        let pid = Pid::from_raw(id).context("no process has the id 0")?;
        let stdout = child.stdout.take().context("no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        let session = within("the worker registers", lines.next_line()).await??;
        let session = session.context("the worker ended before it had a session")?.parse()?;
        let stdin = child.stdin.take();
        Ok(Self { child, stdin, pid, name: name.to_owned(), session })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// What it calls itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The session that it started with.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Ends it at once.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        self.child.start_kill()?;
        self.ended().await
    }

    /// Stops it in the middle of whatever it does.
    pub fn pause(&self) -> anyhow::Result<()> {
        Ok(kill_process(self.pid, Signal::STOP)?)
    }

    /// Lets it go on.
    pub fn resume(&self) -> anyhow::Result<()> {
        Ok(kill_process(self.pid, Signal::CONT)?)
    }

    /// Waits until it dies, for as long as it takes.
    pub async fn died(&mut self) -> anyhow::Result<()> {
        self.child.wait().await?;
        Ok(())
    }

    /// Waits for its end, however it comes.
    pub async fn ended(&mut self) -> anyhow::Result<()> {
        within("a worker ends", self.child.wait()).await??;
        Ok(())
    }

    /// Lets it finish what it runs, and waits for its end.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        drop(self.stdin.take());
        self.ended().await
    }
}

fn program(beside: &Path) -> anyhow::Result<PathBuf> {
    let folder = beside.parent().context("a binary lies in a folder")?;
    let program = folder.join("harness_worker");
    if !program.exists() {
        bail!("{} is missing: run `cargo build -p duly-testkit`", program.display());
    }
    Ok(program)
}

/// What workers have written down behind this place of the file, which is the end of a line.
pub fn effects_from(path: &Path, place: u64) -> anyhow::Result<Vec<Line<Effect>>> {
    journal::read_from(path, place)
}

/// About the last lines that workers have written down.
pub fn last_effects(path: &Path, lines: u64) -> anyhow::Result<Vec<Line<Effect>>> {
    /// More than a line takes.
    const LINE: u64 = 250;
    let Ok(size) = std::fs::metadata(path).map(|meta| meta.len()) else { return Ok(Vec::new()) };
    effects_from(path, size.saturating_sub(lines * LINE))
}

/// What workers have written down.
pub fn effects(path: &Path) -> anyhow::Result<Vec<Line<Effect>>> {
    if path.exists() { journal::read(path) } else { Ok(Vec::new()) }
}
