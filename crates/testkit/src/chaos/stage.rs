//! Server, workers, wire and disk of a run, and how to break and mend them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use duly_client::Client;
use tokio::sync::Mutex;

use super::{Config, TTL};
use crate::disk::Disk;
use crate::effects::{Effect, Ev};
use crate::history::{Edge, Fault, FaultKind, file};
use crate::journal::Journal;
use crate::proxy::Proxy;
use crate::{Server, Worker, worker};

/// Worker processes, and handlers that each runs at once.
pub(super) const WORKERS: usize = 3;
const CONCURRENCY: usize = 16;
/// The server's disk: large enough for a long run.
const DISK: &str = "size=768m";

/// Everything that takes part.
pub(super) struct Stage {
    duly: PathBuf,
    flags: Vec<String>,
    data: PathBuf,
    effects: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) disk: Option<Disk>,
    pub(super) proxy: Proxy,
    client: Client,
    server: Mutex<Option<Server>>,
    workers: Vec<Mutex<Option<Worker>>>,
    starts: AtomicU64,
    journal: Journal,
}

impl Stage {
    pub(super) async fn build(config: &Config) -> anyhow::Result<Self> {
        let data = config.folder.join("data");
        std::fs::create_dir_all(&data)?;
        let ttl = format!("{}ms", TTL.as_millis());
        let mut flags = vec!["--concurrency".to_owned(), "0".to_owned()];
        flags.extend(["--session-ttl".to_owned(), ttl]);
        // Many faults hit the same long task; what is tested here is not the limit.
        flags.extend(["--loss-limit".to_owned(), "1000".to_owned()]);
        if let Some(bug) = &config.bug {
            flags.extend(["--planted-bug".to_owned(), bug.clone()]);
        }
        let proxy = Proxy::start().await?;
        let stage = Self {
            duly: config.duly.clone(),
            flags,
            effects: config.folder.join(file::EFFECTS),
            folder: config.folder.clone(),
            disk: Disk::mount(&data, DISK)?,
            client: Client::new(&proxy.url(), None)?,
            proxy,
            data,
            server: Mutex::new(None),
            workers: (0..WORKERS).map(|_| Mutex::new(None)).collect(),
            starts: AtomicU64::new(0),
            journal: Journal::open(&config.folder.join(file::NEMESIS))?,
        };
        stage.start_server().await?;
        for (place, worker) in stage.workers.iter().enumerate() {
            *worker.lock().await = Some(stage.start_worker(place).await?);
        }
        Ok(stage)
    }

    /// A client at the other end of the wire.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn effects(&self) -> &Path {
        &self.effects
    }

    async fn start_server(&self) -> anyhow::Result<()> {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        let server = Server::start(&self.duly, &self.data, &flags).await?;
        self.proxy.lead_to(server.url())?;
        *self.server.lock().await = Some(server);
        Ok(())
    }

    /// Workers have a new name with every start, so that the judge can tell their lives apart.
    async fn start_worker(&self, place: usize) -> anyhow::Result<Worker> {
        let number = self.starts.fetch_add(1, Ordering::SeqCst);
        let name = format!("w{place}-{number}");
        let url = self.proxy.url();
        Worker::start(&self.duly, &url, &self.effects, &name, CONCURRENCY).await
    }

    /// `kill -9` of the server, and a new start on the same data.
    pub(super) async fn kill_server(&self) -> anyhow::Result<()> {
        let server = self.server.lock().await.take().context("there is no server")?;
        self.note(FaultKind::Kill, "server", Edge::Begin)?;
        server.kill().await?;
        self.note(FaultKind::Kill, "server", Edge::End)?;
        self.start_server().await
    }

    /// SIGTERM's way of ending the server, and a new start.
    pub(super) async fn restart_server(&self) -> anyhow::Result<()> {
        let server = self.server.lock().await.take().context("there is no server")?;
        self.note(FaultKind::Restart, "server", Edge::Begin)?;
        let (status, said) = server.terminate().await?;
        anyhow::ensure!(status.success(), "the server ended with {status}: {said}");
        self.note(FaultKind::Restart, "server", Edge::End)?;
        self.start_server().await
    }

    /// `kill -9` of a worker, and a new one in its place.
    pub(super) async fn kill_worker(&self, place: usize) -> anyhow::Result<()> {
        // Held until there is a new one: another fault of this worker waits for that.
        let mut seat = self.workers[place].lock().await;
        let worker = seat.take().context("there is no worker")?;
        let name = worker.name().to_owned();
        self.note(FaultKind::Kill, &name, Edge::Begin)?;
        worker.kill().await?;
        self.note(FaultKind::Kill, &name, Edge::End)?;
        *seat = Some(self.start_worker(place).await?);
        Ok(())
    }

    /// This worker, or the next one that no fault has in its hands.
    pub(super) fn free_place(&self, place: usize) -> usize {
        let mut places = (0..WORKERS).map(|step| (place + step) % WORKERS);
        places.find(|place| self.workers[*place].try_lock().is_ok()).unwrap_or(place)
    }

    /// A worker ends in order, and a new one takes its place.
    pub(super) async fn restart_worker(&self, place: usize) -> anyhow::Result<()> {
        let mut seat = self.workers[place].lock().await;
        let worker = seat.take().context("there is no worker")?;
        let name = worker.name().to_owned();
        self.note(FaultKind::Restart, &name, Edge::Begin)?;
        worker.stop().await?;
        self.note(FaultKind::Restart, &name, Edge::End)?;
        *seat = Some(self.start_worker(place).await?);
        Ok(())
    }

    /// Stops a worker in whatever it does, for as long as `pause` takes.
    pub(super) async fn pause_worker(
        &self,
        place: usize,
        pause: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let worker = self.workers[place].lock().await;
        let worker = worker.as_ref().context("there is no worker")?;
        self.note(FaultKind::Pause, worker.name(), Edge::Begin)?;
        worker.pause()?;
        pause.await;
        worker.resume()?;
        self.note(FaultKind::Pause, worker.name(), Edge::End)
    }

    /// Writes a fault down, with what was under way.
    pub(super) fn note(&self, fault: FaultKind, target: &str, phase: Edge) -> anyhow::Result<()> {
        let in_flight = if phase == Edge::Begin { self.in_flight()? } else { 0 };
        let target = target.to_owned();
        self.journal.write(Fault { fault, target, phase, in_flight })?;
        Ok(())
    }

    /// Executions under way among the last that were written down.
    fn in_flight(&self) -> anyhow::Result<u64> {
        let mut open = std::collections::HashSet::new();
        for line in worker::last_effects(&self.effects, 2_000)? {
            let Effect { task, epoch, ev, .. } = line.event;
            match ev {
                Ev::Start => open.insert((task, epoch)),
                Ev::End | Ev::CommitOk | Ev::CommitRefused | Ev::CommitUnknown => {
                    open.remove(&(task, epoch))
                }
            };
        }
        Ok(u64::try_from(open.len())?)
    }

    /// Lets everybody go home.
    pub(super) async fn clear(self) -> anyhow::Result<()> {
        for worker in self.workers {
            if let Some(worker) = worker.into_inner() {
                worker.stop().await?;
            }
        }
        if let Some(server) = self.server.into_inner() {
            server.interrupt().await?;
        }
        Ok(())
    }
}
