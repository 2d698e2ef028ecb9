//! A node as a child process.

use std::process::{ExitStatus, Stdio};

use anyhow::{Context as _, bail};
use duly_client::Client;
use duly_testkit::wait::{PATIENCE, eventually, within};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(crate) const DULY: &str = env!("CARGO_BIN_EXE_duly");

/// A running `duly serve`; dropping it kills it.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) client: Client,
    child: Child,
    pid: Pid,
    said: watch::Receiver<String>,
    _listener: JoinSet<()>,
}

impl Node {
    /// Starts a node and waits until it is ready.
    pub(crate) async fn start(name: &str, store: &str, extra: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(DULY);
        command.args(["serve", "--insecure", "--listen", "127.0.0.1:0", "--name", name]);
        command.args(extra).env("DULY_STORE", store).env_remove("RUST_LOG").kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let id = i32::try_from(child.id().context("the node has ended")?)?;
        let pid = Pid::from_raw(id).context("no process has the id 0")?;
        let (words, said) = watch::channel(String::new());
        let mut listener = JoinSet::new();
        listener.spawn(listen(child.stderr.take().context("no standard error")?, words));
        let stdout = child.stdout.take().context("no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        let Some(url) = within("the node prints its URL", lines.next_line()).await?? else {
            let status = child.wait().await?;
            bail!("the node ended with {status} before it printed its URL: {}", &*said.borrow());
        };
        let client = Client::new(&url, None)?;
        let is_ready = || async { client.ready().await.ok()?.is_ready().then_some(()) };
        eventually("the node becomes ready", PATIENCE, is_ready).await?;
        Ok(Self { name: name.to_owned(), client, child, pid, said, _listener: listener })
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        Ok(kill_process(self.pid, signal)?)
    }

    /// Kills it at once.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        self.child.start_kill()?;
        within("a killed node ends", self.child.wait()).await??;
        Ok(())
    }

    /// Sends what a service manager sends, and waits for its end.
    pub(crate) async fn terminate(mut self) -> anyhow::Result<(ExitStatus, String)> {
        self.signal(Signal::TERM)?;
        let status = within("the node ends", self.child.wait()).await??;
        // The sender goes when the pipe ends, and a watch wakes its receivers then.
        while self.said.changed().await.is_ok() {}
        Ok((status, self.said.borrow().clone()))
    }

    /// Waits until its standard error holds this text.
    pub(crate) async fn says(&mut self, text: &str) -> anyhow::Result<()> {
        let said = within(text, self.said.wait_for(|said| said.contains(text))).await?;
        said.with_context(|| format!("the node ended without saying {text:?}"))?;
        Ok(())
    }
}

async fn listen(mut stderr: ChildStderr, words: watch::Sender<String>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let text = String::from_utf8_lossy(&buffer[..count]);
        words.send_modify(|said| said.push_str(&text));
    }
}
