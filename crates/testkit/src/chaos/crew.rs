//! The worker processes of a run, and how to break and mend them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use tokio::sync::Mutex;

use super::notes::Notes;
use crate::Worker;
use crate::history::{Edge, FaultKind};
use crate::wait::{PATIENCE, eventually};

/// Worker processes, and handlers that each runs at once.
pub(super) const WORKERS: usize = 3;
const CONCURRENCY: usize = 16;

/// All of them.
pub(super) struct Crew {
    duly: PathBuf,
    /// Where each finds the server.
    urls: [String; WORKERS],
    /// What they show it, if it asks for tokens.
    token: Option<String>,
    seats: [Mutex<Option<Worker>>; WORKERS],
    starts: AtomicU64,
    notes: Arc<Notes>,
}

impl Crew {
    pub(super) async fn start(
        duly: PathBuf,
        urls: [String; WORKERS],
        token: Option<String>,
        notes: Arc<Notes>,
    ) -> anyhow::Result<Self> {
        let seats = [(); WORKERS].map(|()| Mutex::new(None));
        let crew = Self { duly, urls, token, seats, starts: AtomicU64::new(0), notes };
        for place in 0..WORKERS {
            *crew.seats[place].lock().await = Some(crew.start_worker(place).await?);
        }
        Ok(crew)
    }

    /// Workers have a new name with every start, so that the judge can tell their lives apart.
    async fn start_worker(&self, place: usize) -> anyhow::Result<Worker> {
        // A worker that does not get its session at the first try does not start.
        let start = || async {
            let number = self.starts.fetch_add(1, Ordering::SeqCst);
            let (name, url) = (format!("w{place}-{number}"), &self.urls[place]);
            let (effects, token) = (self.notes.effects(), self.token.as_deref());
            Worker::start_as(token, &self.duly, url, effects, &name, CONCURRENCY).await.ok()
        };
        eventually("a worker starts", PATIENCE, start).await
    }

    /// `kill -9` of a worker, and a new one in its place.
    pub(super) async fn kill(&self, place: usize) -> anyhow::Result<()> {
        // Held until there is a new one: another fault of this worker waits for that.
        let mut seat = self.seats[place].lock().await;
        let worker = seat.take().context("there is no worker")?;
        let name = worker.name().to_owned();
        self.notes.fault(FaultKind::Kill, &name, Edge::Begin)?;
        worker.kill().await?;
        self.notes.fault(FaultKind::Kill, &name, Edge::End)?;
        *seat = Some(self.start_worker(place).await?);
        Ok(())
    }

    /// A worker ends in order, and a new one takes its place.
    pub(super) async fn restart(&self, place: usize) -> anyhow::Result<()> {
        let mut seat = self.seats[place].lock().await;
        let worker = seat.take().context("there is no worker")?;
        let name = worker.name().to_owned();
        self.notes.fault(FaultKind::Restart, &name, Edge::Begin)?;
        worker.stop().await?;
        self.notes.fault(FaultKind::Restart, &name, Edge::End)?;
        *seat = Some(self.start_worker(place).await?);
        Ok(())
    }

    /// Stops a worker in whatever it does, for as long as `pause` takes.
    pub(super) async fn pause(
        &self,
        place: usize,
        pause: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let worker = self.seats[place].lock().await;
        let worker = worker.as_ref().context("there is no worker")?;
        self.notes.fault(FaultKind::Pause, worker.name(), Edge::Begin)?;
        worker.pause()?;
        pause.await;
        worker.resume()?;
        self.notes.fault(FaultKind::Pause, worker.name(), Edge::End)
    }

    /// This worker, or the next one that no fault has in its hands.
    pub(super) fn free_place(&self, place: usize) -> usize {
        let mut places = (0..WORKERS).map(|step| (place + step) % WORKERS);
        places.find(|place| self.seats[*place].try_lock().is_ok()).unwrap_or(place)
    }

    /// Lets them go home.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        for seat in self.seats {
            if let Some(worker) = seat.into_inner() {
                worker.stop().await?;
            }
        }
        Ok(())
    }
}
