//! The loop that stands for leader, and the loops that only the leader runs.
//!
//! A node that could not renew in time stops leading by its own monotonic clock, which it starts
//! before it asks: whoever the store lets lead next, this one has stopped by then.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::NodeId;
use duly_core::ports::store::{self, Leader, Store};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::pace::Pace;

/// Whether this node leads; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Lead(watch::Sender<bool>);

impl Default for Lead {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Lead {
    fn set(&self, leads: bool) -> bool {
        self.0.send_if_modified(|known| std::mem::replace(known, leads) != leads)
    }

    /// Runs a loop whenever this node leads, and drops it when it leads no more.
    pub(crate) async fn while_leading<F: Future<Output = ()>>(&self, run: impl Fn() -> F) {
        loop {
            self.wait_for(true).await;
            tokio::select! {
                () = self.wait_for(false) => {}
                () = run() => {}
            }
        }
    }

    async fn wait_for(&self, leads: bool) {
        let mut changes = self.0.subscribe();
        changes.wait_for(|known| *known == leads).await.expect("the sender is in the same value");
    }
}

pub(crate) struct Candidate {
    pub(crate) pace: Pace,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) lead: Lead,
    /// When the lead ends, as far as this node may count on it.
    pub(crate) until: Option<Instant>,
    /// Who led when it was last asked.
    pub(crate) leader: Option<NodeId>,
}

impl Candidate {
    /// Stands until shut down, then makes room.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        loop {
            let pause = match self.run_once().await {
                // Nobody else could lead: there is nothing to renew.
                Ok(Leader { until: None, .. }) => Duration::MAX,
                Ok(_) => self.pace.every(),
                Err(error) => {
                    tracing::debug!(%error, "the store is away; nobody knows who leads");
                    self.pace.back_off()
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.rest(pause) => {}
            }
        }
        if self.lead.set(false)
            && let Err(error) = self.store.resign(self.store.node()).await
        {
            tracing::debug!(%error, "the lead ends by itself");
        }
    }

    /// One try to take the lead or to keep it. Answers who leads.
    async fn run_once(&mut self) -> store::Result<Leader> {
        let asked = Instant::now();
        let node = self.store.node();
        let answer = tokio::select! {
            answer = self.store.lead(node, self.pace.ttl) => answer,
            // An answer that takes too long must not keep this node in the lead.
            () = self.over() => {
                self.step_down();
                let reason = "the lead was not renewed in time".to_owned();
                return Err(store::Error::Unavailable { reason });
            }
        };
        let leader = answer?;
        let leads = leader.node == node;
        self.until = (leads && leader.until.is_some()).then(|| asked + self.pace.ttl);
        self.lead.set(leads);
        if self.leader.replace(leader.node) != Some(leader.node) {
            let name = self.name_of(leader.node).await;
            tracing::info!(leader.name = name, leader.term, is_this_node = leads, "a node leads");
        }
        Ok(leader)
    }

    /// What a node calls itself; its id if that cannot be told soon.
    async fn name_of(&self, node: NodeId) -> String {
        let nodes = tokio::time::timeout(self.pace.ttl / 10, self.store.nodes()).await;
        let nodes = nodes.ok().and_then(Result::ok).unwrap_or_default();
        let known = nodes.into_iter().find(|it| it.id == node);
        known.map_or_else(|| node.to_string(), |it| it.joined.name)
    }

    /// Waits for the next try; the lead may end meanwhile.
    async fn rest(&mut self, pause: Duration) {
        let asked = Instant::now();
        if self.until.is_some_and(|until| until < asked + pause) {
            self.over().await;
            self.step_down();
        }
        tokio::time::sleep(pause.saturating_sub(asked.elapsed())).await;
    }

    /// Waits until the lead has ended; for ever if there is none.
    async fn over(&self) {
        match self.until {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    }

    fn step_down(&mut self) {
        self.until = None;
        if self.lead.set(false) {
            tracing::warn!("this node no longer leads: the store did not answer in time");
        }
    }
}
