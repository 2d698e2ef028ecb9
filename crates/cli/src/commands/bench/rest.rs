//! The real server in its own process, under load over HTTP.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use duly_store::limit::PAYLOAD;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use super::auth::Access;
use super::figures::{Figure, Target};
use super::http::{Connection, post, post_as};
use super::limits::Limits;
use super::run::Run;
use super::store_site::StoreSite;
use super::{BATCH, ROUNDS};

/// Connections that submit one task at a time.
const CONNECTIONS: usize = 64;
/// Connections that submit in batches.
pub(super) const BATCH_CONNECTIONS: usize = 4;

pub(super) const STEPS: usize = 1 + ROUNDS;
/// Submits of a single client.
const LONE: usize = 3_000;
/// Submits of many clients, one task each.
const SINGLE: usize = 50_000;

pub(super) async fn measure(run: &mut Run, limits: &Limits) -> anyhow::Result<()> {
    run.step(&format!("REST: {LONE} submits of one client, one at a time"));
    let time = submits(run, (1, LONE), false).await?;
    run.add(Figure::rate("REST: single submit, 1 connection", LONE, time));

    let (single, tasks) = (run.tasks.min(SINGLE), run.tasks);
    let (mut singles, mut batches) = (Duration::MAX, Duration::MAX);
    for round in 1..=ROUNDS {
        run.step(&format!(
            "REST: {single} single submits, {tasks} in batches, {round} of {ROUNDS}"
        ));
        singles = singles.min(submits(run, (CONNECTIONS, single), true).await?);
        batches = batches.min(batch_submits(run).await?);
    }
    let figure = Figure::rate("REST: single submit", single, singles);
    run.add(run.per_store(
        figure.clone().must(Target::AtLeast(10_000.0)).stretch(Target::AtLeast(20_000.0)),
        figure,
    ));
    let figure = Figure::rate("REST: batch submit", tasks, batches);
    let figure = figure.compare_rate(limits.lives.tasks, limits.lives.submit);
    run.add(figure.must(Target::Ratio(0.5)).stretch(Target::Ratio(0.7)));
    Ok(())
}

/// Submits of one task each over many connections, to a server that lets in whom it is told to.
pub(super) async fn single_submits(
    run: &Run,
    count: usize,
    access: Access<'_>,
) -> anyhow::Result<Duration> {
    let site = run.new_site("keys").await?;
    let body = format!(r#"{{"type":"echo","payload":{PAYLOAD}}}"#);
    let request = post_as(access.token().as_deref(), "/tasks", &body);
    let mut server = Server::start_with(&site, true, access).await?;
    let time = server.load(CONNECTIONS, count, request).await?;
    server.stop().await?;
    site.remove().await?;
    Ok(time)
}

/// `count` submits of one task each, over `connections`.
async fn submits(
    run: &Run,
    (connections, count): (usize, usize),
    has_worker: bool,
) -> anyhow::Result<Duration> {
    let body = format!(r#"{{"type":"echo","payload":{PAYLOAD}}}"#);
    load(run.new_site("single").await?, has_worker, (connections, count), post("/tasks", &body))
        .await
}

/// Submits the tasks of the run in batches, due tomorrow.
async fn batch_submits(run: &Run) -> anyhow::Result<Duration> {
    let item = format!(r#"{{"type":"echo","payload":{PAYLOAD},"delaySeconds":86400}}"#);
    let body = format!("[{}]", vec![item; BATCH].join(","));
    let count = (BATCH_CONNECTIONS, run.tasks / BATCH);
    load(run.new_site("batch").await?, true, count, post("/tasks/batch", &body)).await
}

/// Sends a request `count` times to a fresh server, over `connections`.
async fn load(
    site: StoreSite,
    has_worker: bool,
    (connections, count): (usize, usize),
    request: Vec<u8>,
) -> anyhow::Result<Duration> {
    let mut server = Server::start(&site, has_worker).await?;
    let time = server.load(connections, count, request).await?;
    server.stop().await?;
    site.remove().await?;
    Ok(time)
}

pub(super) struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    pub(super) async fn start(site: &StoreSite, has_worker: bool) -> anyhow::Result<Self> {
        Self::start_with(site, has_worker, Access::Usual).await
    }

    /// The same for these callers.
    pub(super) async fn start_with(
        site: &StoreSite,
        has_worker: bool,
        access: Access<'_>,
    ) -> anyhow::Result<Self> {
        let mut command =
            Command::new(std::env::current_exe().context("cannot find this program")?);
        site.add_serve_args(&mut command, has_worker, access);
        let mut process = command
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the server")?;
        let mut line = String::new();
        let stdout = process.stdout.take().context("the server has no output")?;
        BufReader::new(stdout).read_line(&mut line).await?;
        let address = line.trim().trim_start_matches("http://").parse();
        let address = address
            .with_context(|| format!("the server printed {line:?} instead of its address"))?;
        Ok(Self { process, address })
    }

    /// Its process, while it runs.
    pub(super) fn id(&self) -> Option<u32> {
        self.process.id()
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) async fn connect(&mut self) -> anyhow::Result<Connection> {
        Connection::open(self.address).await
    }

    /// Sends the request `count` times over `connections`.
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
