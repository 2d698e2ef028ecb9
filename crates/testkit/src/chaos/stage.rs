//! Server, workers, wire and disk of a run on one machine, and how to break and mend them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::Mutex;

use super::crew::{Crew, WORKERS};
use super::doors::Doors;
use super::notes::Notes;
use super::{Config, TTL};
use crate::Server;
use crate::disk::Disk;
use crate::history::{Edge, FaultKind};
use crate::proxy::Proxy;

/// The server's disk: large enough for a long run.
const DISK: &str = "size=768m";

/// Everything that takes part.
pub(super) struct Stage {
    duly: PathBuf,
    flags: Vec<String>,
    data: PathBuf,
    pub(super) disk: Option<Disk>,
    pub(super) proxy: Proxy,
    server: Mutex<Option<Server>>,
    pub(super) crew: Crew,
    pub(super) notes: Arc<Notes>,
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
        let (duly, notes) = (config.duly.clone(), Arc::new(Notes::open(&config.folder)?));
        let disk = Disk::mount(&data, DISK)?;
        let proxy = Proxy::start().await?;
        let server = start(&duly, &data, &flags, &proxy).await?;
        let urls = [(); WORKERS].map(|()| proxy.url());
        let crew = Crew::start(duly.clone(), urls, None, Arc::clone(&notes)).await?;
        let server = Mutex::new(Some(server));
        Ok(Self { duly, flags, data, disk, proxy, server, crew, notes })
    }

    /// The one way in: the other end of the wire.
    pub(super) fn doors(&self) -> anyhow::Result<Doors> {
        Doors::to(&[self.proxy.url()], None)
    }

    async fn start_server(&self) -> anyhow::Result<()> {
        let server = start(&self.duly, &self.data, &self.flags, &self.proxy).await?;
        *self.server.lock().await = Some(server);
        Ok(())
    }

    /// `kill -9` of the server, and a new start on the same data.
    pub(super) async fn kill_server(&self) -> anyhow::Result<()> {
        let server = self.server.lock().await.take().context("there is no server")?;
        self.notes.fault(FaultKind::Kill, "server", Edge::Begin)?;
        server.kill().await?;
        self.notes.fault(FaultKind::Kill, "server", Edge::End)?;
        self.start_server().await
    }

    /// SIGTERM's way of ending the server, and a new start.
    pub(super) async fn restart_server(&self) -> anyhow::Result<()> {
        let server = self.server.lock().await.take().context("there is no server")?;
        self.notes.fault(FaultKind::Restart, "server", Edge::Begin)?;
        let (status, said) = server.terminate().await?;
        anyhow::ensure!(status.success(), "the server ended with {status}: {said}");
        self.notes.fault(FaultKind::Restart, "server", Edge::End)?;
        self.start_server().await
    }

    /// Lets everybody go home.
    pub(super) async fn clear(self) -> anyhow::Result<()> {
        self.crew.stop().await?;
        if let Some(server) = self.server.into_inner() {
            server.interrupt().await?;
        }
        Ok(())
    }
}

/// A server at the end of the wire.
async fn start(
    duly: &Path,
    data: &Path,
    flags: &[String],
    proxy: &Proxy,
) -> anyhow::Result<Server> {
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Server::start(duly, data, &flags).await?;
    proxy.lead_to(server.url())?;
    Ok(server)
}
