//! One of many servers over one store, as a child process.

use std::path::Path;
use std::process::{ExitStatus, Stdio};

use anyhow::{Context as _, bail};
use duly_client::Client;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::wait::{PATIENCE, eventually, within};

/// A running `duly serve` on a port of its own; dropping it kills it.
#[derive(Debug)]
pub struct Node {
    /// What it calls itself.
    pub name: String,
    /// A client of it.
    pub client: Client,
    url: String,
    child: Child,
    pid: Pid,
    said: watch::Receiver<String>,
    _listener: JoinSet<()>,
}

impl Node {
    /// Starts a node without keys and waits until it is ready.
    pub async fn start(
        binary: &Path,
        name: &str,
        store: &str,
        extra: &[&str],
    ) -> anyhow::Result<Self> {
        Self::spawn(binary, name, store, &["--insecure"], extra).await
    }

    /// The same with the keys of a configuration file. [`Node::client`] sends no token.
    pub async fn start_with_keys(
        binary: &Path,
        name: &str,
        store: &str,
        config: &str,
        extra: &[&str],
    ) -> anyhow::Result<Self> {
        Self::spawn(binary, name, store, &["--config", config], extra).await
    }

    async fn spawn(
        binary: &Path,
        name: &str,
        store: &str,
        access: &[&str],
        extra: &[&str],
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(binary);
        command.arg("serve").args(access).args(["--listen", "127.0.0.1:0", "--name", name]);
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
        let name = name.to_owned();
        Ok(Self { name, client, url, child, pid, said, _listener: listener })
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        Ok(kill_process(self.pid, signal)?)
    }

    /// Kills it at once.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        self.child.start_kill()?;
        within("a killed node ends", self.child.wait()).await??;
        Ok(())
    }

    /// Sends what a service manager sends, and waits for its end.
    pub async fn terminate(mut self) -> anyhow::Result<(ExitStatus, String)> {
        self.signal(Signal::TERM)?;
        let status = within("the node ends", self.child.wait()).await??;
        // The sender goes when the pipe ends, and a watch wakes its receivers then.
        while self.said.changed().await.is_ok() {}
        Ok((status, self.said.borrow().clone()))
    }

    /// Waits until its standard error holds this text.
    pub async fn says(&mut self, text: &str) -> anyhow::Result<()> {
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
