//! The real server, in a process of its own, under load over HTTP.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use duly_store::sqlite::limit::PAYLOAD;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use super::BATCH;
use super::figures::{Figure, Target};
use super::http::{Connection, post};
use super::limits::Limits;
use super::run::Run;

/// Connections that submit one task at a time.
const CONNECTIONS: usize = 64;
/// Connections that submit in batches.
pub(super) const BATCH_CONNECTIONS: usize = 4;

pub(super) const STEPS: usize = 3;
/// Submits of a lone client.
const LONE: usize = 3_000;

pub(super) async fn measure(run: &mut Run, limits: &Limits) -> anyhow::Result<()> {
    let body = format!(r#"{{"type":"echo","payload":{PAYLOAD}}}"#);
    run.step(&format!("REST: {LONE} submits of one client, one at a time"));
    let mut server = Server::start(&run.folder("lone"), &["--concurrency", "0"]).await?;
    let time = server.load(1, LONE, post("/tasks", &body)).await?;
    run.found(Figure::rate("REST: single submit, 1 connection", LONE, time));
    server.stop().await?;

    let single = run.tasks.min(50_000);
    run.step(&format!("REST: {single} single submits from {CONNECTIONS} connections"));
    let mut server = Server::start(&run.folder("single"), &[]).await?;
    let time = server.load(CONNECTIONS, single, post("/tasks", &body)).await?;
    let figure = Figure::rate("REST: single submit", single, time);
    run.found(figure.must(Target::AtLeast(10_000.0)).then(Target::AtLeast(20_000.0)));
    server.stop().await?;

    let batches = run.tasks / BATCH;
    run.step(&format!("REST: {batches} batches of {BATCH}"));
    let mut server = Server::start(&run.folder("batch"), &[]).await?;
    let item = format!(r#"{{"type":"echo","payload":{PAYLOAD},"delaySeconds":86400}}"#);
    let body = format!("[{}]", vec![item; BATCH].join(","));
    let time = server.load(BATCH_CONNECTIONS, batches, post("/tasks/batch", &body)).await?;
    let figure = Figure::rate("REST: batch submit", batches * BATCH, time);
    let figure = figure.beside(limits.lives.tasks, limits.lives.submit);
    run.found(figure.must(Target::Ratio(0.5)).then(Target::Ratio(0.7)));
    server.stop().await
}

pub(super) struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    pub(super) async fn start(folder: &Path, extra: &[&str]) -> anyhow::Result<Self> {
        let binary = std::env::current_exe().context("cannot find this program")?;
        let mut process = Command::new(binary)
            .args(["dev", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder)
            .args(extra)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the server")?;
        let mut line = String::new();
        let stdout = process.stdout.take().context("the server has no output")?;
        BufReader::new(stdout).read_line(&mut line).await?;
        let address = line.trim().trim_start_matches("http://").parse();
        let address = address.with_context(|| format!("the server said {line:?}"))?;
        Ok(Self { process, address })
    }

    /// Its process, while it runs.
    pub(super) fn id(&self) -> Option<u32> {
        self.process.id()
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) async fn connect(&mut self) -> anyhow::Result<Connection> {
        Connection::open(self.address).await
    }

    /// Sends the request `count` times over so many connections.
    pub(super) async fn load(
        &mut self,
        connections: usize,
        count: usize,
        request: Vec<u8>,
    ) -> anyhow::Result<Duration> {
        let request: Arc<[u8]> = request.into();
        let left = Arc::new(AtomicUsize::new(count));
        let mut clients = JoinSet::new();
        for _ in 0..connections {
            let mut connection = self.connect().await?;
            let (request, left) = (Arc::clone(&request), Arc::clone(&left));
            clients.spawn(async move {
                let take = |left: usize| left.checked_sub(1);
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                    connection.send(&request).await?;
                }
                anyhow::Ok(())
            });
        }
        let start = Instant::now();
        while let Some(client) = clients.join_next().await {
            client??;
        }
        Ok(start.elapsed())
    }

    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.process.kill().await.context("cannot stop the server")
    }
}
