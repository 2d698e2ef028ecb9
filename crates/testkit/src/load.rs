//! Clients that submit `http` tasks one after the other, each with a key of its own, and repeat a
//! submit that was not answered until it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use duly_client::wire::SubmitRequest;
use duly_client::{Client, Error};
use duly_core::id::TaskId;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::site::Sites;
use crate::wait::within;

/// A submit that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The task it got.
    pub task: TaskId,
    /// The start of the server that answered.
    pub generation: u32,
}

/// What the clients know.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Answered submits by their keys.
    pub acked: BTreeMap<String, Ack>,
    /// Keys of the submits that were sent and not answered.
    pub in_flight: BTreeSet<String>,
    /// Submits that were never answered: which start of the server, which key.
    pub unanswered: Vec<(u32, String)>,
}

/// The running clients.
#[derive(Debug)]
pub struct Load {
    shared: Arc<Shared>,
    clients: JoinSet<anyhow::Result<()>>,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Shared {
    sites: Sites,
    template: SubmitRequest,
    progress: watch::Sender<Progress>,
    acks: mpsc::UnboundedSender<Ack>,
}

impl Load {
    /// Starts clients that submit copies of a task; every answer is passed on.
    pub fn start(
        clients: usize,
        sites: Sites,
        template: SubmitRequest,
        acks: mpsc::UnboundedSender<Ack>,
    ) -> Self {
        let progress = watch::channel(Progress::default()).0;
        let shared = Arc::new(Shared { sites, template, progress, acks });
        let stop = CancellationToken::new();
        let mut running = JoinSet::new();
        for client in 0..clients {
            let (shared, stop) = (Arc::clone(&shared), stop.clone());
            running.spawn(async move { shared.submit_until(client, &stop).await });
        }
        Self { shared, clients: running, stop }
    }

    /// What the clients know by now.
    pub fn progress(&self) -> Progress {
        self.shared.progress.borrow().clone()
    }

    /// How many submits wait for their answers at this instant.
    pub fn in_flight(&self) -> usize {
        self.shared.progress.borrow().in_flight.len()
    }

    /// Waits until what the clients know satisfies the condition. A client that gave up is told
    /// at once.
    pub async fn wait_for(
        &mut self,
        condition: impl FnMut(&Progress) -> bool,
    ) -> anyhow::Result<()> {
        let mut progress = self.shared.progress.subscribe();
        tokio::select! {
            met = progress.wait_for(condition) => drop(met.context("the load is alive")?),
            Some(ended) = self.clients.join_next() => {
                ended??;
                bail!("a client of the load has ended early");
            }
        }
        Ok(())
    }

    /// Lets every client get its last answer, and returns what they know.
    pub async fn finish(mut self) -> anyhow::Result<Progress> {
        self.stop.cancel();
        while let Some(ended) =
            within("every submit is answered in the end", self.clients.join_next()).await?
        {
            ended??;
        }
        Ok(self.progress())
    }
}

impl Shared {
    async fn submit_until(&self, client: usize, stop: &CancellationToken) -> anyhow::Result<()> {
        let mut number = 0;
        while !stop.is_cancelled() {
            let key = format!("load-{client}-{number}");
            let ack = self.submit(&key).await?;
            self.progress.send_modify(|progress| {
                progress.acked.insert(key, ack);
            });
            // Nobody may be interested.
            let _ = self.acks.send(ack);
            number += 1;
        }
        Ok(())
    }

    /// Submits under a key until some server answers.
    async fn submit(&self, key: &str) -> anyhow::Result<Ack> {
        let mut generation = 0;
        loop {
            let site = self.sites.after(generation).await;
            generation = site.generation;
            self.progress.send_modify(|progress| {
                progress.in_flight.insert(key.to_owned());
            });
            let answer = submit(&site.client, &self.template, key).await;
            self.progress.send_modify(|progress| {
                progress.in_flight.remove(key);
            });
            match answer {
                Ok(task) => return Ok(Ack { task, generation }),
                Err(Error::Unreachable { .. }) => self.progress.send_modify(|progress| {
                    progress.unanswered.push((generation, key.to_owned()));
                }),
                Err(error) => return Err(error).context("a submit was refused"),
            }
        }
    }
}

/// Submits a copy of a task under a key.
pub async fn submit(client: &Client, template: &SubmitRequest, key: &str) -> Result<TaskId, Error> {
    let request = SubmitRequest { idempotency_key: Some(key.to_owned()), ..template.clone() };
    Ok(client.submit(&request).await?.task_id)
}
