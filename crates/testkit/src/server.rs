//! The real binary as a child process.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use anyhow::{Context as _, bail};
use duly_client::Client;
use duly_client::wire::TaskView;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::tasks;
use crate::wait::{PATIENCE, eventually, within};

/// The last words of a start, on standard error.
const WELCOMED: &str = "(Ctrl-C stops)";

/// A running `duly dev` on a port of its own; dropping it kills it.
#[derive(Debug)]
pub struct Server {
    child: Child,
    pid: Pid,
    url: String,
    client: Client,
    said: watch::Receiver<String>,
    stdout: Lines<BufReader<ChildStdout>>,
    _listener: JoinSet<()>,
}

impl Server {
    /// Starts the server on a data directory and waits until it is ready.
    pub async fn start(binary: &Path, data: &Path, extra: &[&str]) -> anyhow::Result<Self> {
        Self::start_under(&[], binary, data, extra).await
    }

    /// The same under another program, which must become the server, as `strace -D` does.
    pub async fn start_under(
        wrapper: &[&str],
        binary: &Path,
        data: &Path,
        extra: &[&str],
    ) -> anyhow::Result<Self> {
        let mut line: Vec<&OsStr> = wrapper.iter().map(OsStr::new).collect();
        line.push(binary.as_os_str());
        line.extend(["dev", "--listen", "127.0.0.1:0", "--data"].map(OsStr::new));
        line.push(data.as_os_str());
        line.extend(extra.iter().map(OsStr::new));
        let mut server = Self::spawn(&line).await?;
        within("the server greets", server.says(WELCOMED)).await??;
        let client = server.client.clone();
        let is_ready = || async { client.ready().await.ok()?.is_ready().then_some(()) };
        eventually("the server becomes ready", PATIENCE, is_ready).await?;
        Ok(server)
    }

    async fn spawn(line: &[&OsStr]) -> anyhow::Result<Self> {
        let (program, arguments) = line.split_first().context("no program")?;
        let mut command = Command::new(program);
        command.args(arguments).env_remove("RUST_LOG").kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot run {program:?}"))?;
        let id = i32::try_from(child.id().context("the server has ended")?)?;
        let pid = Pid::from_raw(id).context("no process has the id 0")?;
        let (words, said) = watch::channel(String::new());
        let mut listener = JoinSet::new();
        listener.spawn(listen(child.stderr.take().context("no standard error")?, words));
        let stdout = child.stdout.take().context("no standard output")?;
        let mut stdout = BufReader::new(stdout).lines();
        let Some(url) = within("the server prints its URL", stdout.next_line()).await?? else {
            let status = child.wait().await?;
            bail!("the server ended with {status} before it printed its URL: {}", &*said.borrow());
        };
        let client = Client::new(&url, None)?;
        Ok(Self { child, pid, url, client, said, stdout, _listener: listener })
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A client of it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until its standard error holds this text, and returns all of it.
    pub async fn says(&mut self, text: &str) -> anyhow::Result<String> {
        let said = self.said.wait_for(|said| said.contains(text)).await;
        Ok(said.with_context(|| format!("the server ended without saying {text:?}"))?.clone())
    }

    /// How many tasks it found running that an earlier process had left.
    pub fn recovered(&self) -> usize {
        let said = self.said.borrow();
        let line = said.lines().find_map(|line| line.trim().strip_prefix("recovered "));
        line.and_then(|line| line.split(' ').next()?.parse().ok()).unwrap_or(0)
    }

    /// Every task that it has.
    pub async fn all_tasks(&self) -> anyhow::Result<Vec<TaskView>> {
        tasks::all_tasks(&self.client).await
    }

    /// Kills it at once, as the kernel does when memory is short.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        self.child.start_kill()?;
        within("a killed server ends", self.child.wait()).await??;
        Ok(())
    }

    /// Sends what Ctrl-C sends.
    pub fn send_interrupt(&self) -> anyhow::Result<()> {
        Ok(kill_process(self.pid, Signal::INT)?)
    }

    /// Sends what a service manager sends, and waits for its end.
    pub async fn terminate(self) -> anyhow::Result<(ExitStatus, String)> {
        kill_process(self.pid, Signal::TERM)?;
        self.ended().await
    }

    /// Waits for its end; returns the status and all it said on standard error. Standard output
    /// must have held the URL alone.
    pub async fn ended(mut self) -> anyhow::Result<(ExitStatus, String)> {
        let status = within("the server ends", self.child.wait()).await??;
        // The sender goes when the pipe ends, and a watch wakes its receivers then.
        while self.said.changed().await.is_ok() {}
        if let Some(line) = self.stdout.next_line().await? {
            bail!("a second line on standard output: {line}");
        }
        Ok((status, self.said.borrow().clone()))
    }

    /// Interrupts it and waits for its end.
    pub async fn interrupt(self) -> anyhow::Result<(ExitStatus, String)> {
        self.send_interrupt()?;
        self.ended().await
    }
}

async fn listen(mut stderr: impl AsyncRead + Unpin, words: watch::Sender<String>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let text = String::from_utf8_lossy(&buffer[..count]);
        words.send_modify(|said| said.push_str(&text));
    }
}
