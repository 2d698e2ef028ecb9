//! Readers of outcomes, at work all the time: for every acknowledged task they write down when
//! its outcome was first read.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use duly_client::Error;
use duly_client::wire::TaskView;
use duly_core::id::TaskId;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinSet;

use crate::load::Ack;
use crate::site::Sites;

/// How long one request waits for an outcome.
const WAIT: Duration = Duration::from_secs(5);

/// What the readers have seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// When each outcome was first read, and what it was.
    pub outcomes: HashMap<TaskId, (Instant, TaskView)>,
    /// Tasks that were acknowledged and not there, asked of the very server that acknowledged.
    pub invisible: Vec<TaskId>,
    /// Tasks that were acknowledged and not there after a restart.
    pub lost: Vec<TaskId>,
}

impl Seen {
    /// How many tasks need not be looked at any more.
    pub fn settled(&self) -> usize {
        self.outcomes.len() + self.lost.len()
    }
}

/// The running readers.
#[derive(Debug)]
pub struct Readers {
    shared: Arc<Shared>,
    readers: JoinSet<anyhow::Result<()>>,
}

#[derive(Debug)]
struct Shared {
    sites: Sites,
    acks: Mutex<mpsc::UnboundedReceiver<Ack>>,
    seen: watch::Sender<Seen>,
}

impl Readers {
    /// Starts readers of the tasks that come through the channel.
    pub fn start(readers: usize, sites: Sites, acks: mpsc::UnboundedReceiver<Ack>) -> Self {
        let seen = watch::channel(Seen::default()).0;
        let shared = Arc::new(Shared { sites, acks: Mutex::new(acks), seen });
        let mut running = JoinSet::new();
        for _ in 0..readers {
            let shared = Arc::clone(&shared);
            running.spawn(async move { shared.read_all().await });
        }
        Self { shared, readers: running }
    }

    /// What they have seen by now.
    pub fn seen(&self) -> Seen {
        self.shared.seen.borrow().clone()
    }

    /// Waits until this many tasks have been read to their outcomes. A reader that gave up is
    /// told at once.
    pub async fn settled(&mut self, tasks: usize) -> anyhow::Result<Seen> {
        let mut seen = self.shared.seen.subscribe();
        let mut settled = std::pin::pin!(seen.wait_for(|seen| seen.settled() >= tasks));
        loop {
            tokio::select! {
                seen = &mut settled => return Ok(seen.context("the readers are alive")?.clone()),
                ended = self.readers.join_next(), if !self.readers.is_empty() => match ended {
                    Some(ended) => ended??,
                    None => bail!("the readers have ended"),
                },
            }
        }
    }
}

impl Shared {
    async fn read_all(&self) -> anyhow::Result<()> {
        loop {
            let next = self.acks.lock().await.recv().await;
            let Some(ack) = next else { return Ok(()) };
            self.read(ack).await?;
        }
    }

    /// Reads one task until its outcome, over as many servers as it takes.
    async fn read(&self, ack: Ack) -> anyhow::Result<()> {
        let mut dead = 0;
        loop {
            let site = self.sites.after(dead).await;
            match site.client.get_task(ack.task, Some(WAIT)).await {
                Ok(view) if view.status.is_terminal() => {
                    let outcome = (Instant::now(), view);
                    self.note(|seen| drop(seen.outcomes.insert(ack.task, outcome)));
                    return Ok(());
                }
                Ok(_) => {}
                Err(Error::Unreachable { .. }) => dead = site.generation,
                Err(Error::Problem { problem, .. }) if problem.status == 404 => {
                    if site.generation > ack.generation {
                        self.note(|seen| seen.lost.push(ack.task));
                        return Ok(());
                    }
                    self.note(|seen| seen.invisible.push(ack.task));
                    dead = site.generation;
                }
                Err(error) => return Err(error).context("a task could not be read"),
            }
        }
    }

    fn note(&self, change: impl FnOnce(&mut Seen)) {
        self.seen.send_modify(change);
    }
}
