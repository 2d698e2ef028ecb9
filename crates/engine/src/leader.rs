//! The loop that campaigns for leadership, and how other loops run only on the leader.
//!
//! A node that cannot renew in time stops leading by its own monotonic clock, which it starts
//! before it asks the store: before the store lets another node lead, this node has stopped.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::NodeId;
use duly_core::ports::store::{self, Leader, Store};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::renewal::Renewal;

/// Whether this node leads; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Leadership(watch::Sender<bool>);

impl Default for Leadership {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Leadership {
    fn set(&self, leads: bool) -> bool {
        self.0.send_if_modified(|known| std::mem::replace(known, leads) != leads)
    }

    /// Runs a loop while this node leads, and drops it when another node leads.
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
    pub(crate) renewal: Renewal,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) lead: Leadership,
    /// Until when this node may act as the leader without a renewal.
    pub(crate) until: Option<Instant>,
    /// The leader at the last answer of the store.
    pub(crate) leader: Option<NodeId>,
}

impl Candidate {
    /// Runs until shutdown, then resigns.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        loop {
            let pause = match self.run_once().await {
                // No other node can lead: there is nothing to renew.
                Ok(Leader { until: None, .. }) => Duration::MAX,
                Ok(_) => self.renewal.interval(),
                Err(error) => {
                    tracing::debug!(%error, "the store is unavailable; the leader is unknown");
                    self.renewal.retry_delay()
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.sleep(pause) => {}
            }
        }
        if self.lead.set(false)
            && let Err(error) = self.store.resign(self.store.node()).await
        {
            tracing::debug!(%error, "cannot resign; the leadership expires");
        }
    }

    /// Tries once to become or to stay the leader. Returns the current leader.
    async fn run_once(&mut self) -> store::Result<Leader> {
        let asked = Instant::now();
        let node = self.store.node();
        let answer = tokio::select! {
            answer = self.store.lead(node, self.renewal.ttl) => answer,
            // While an answer is late, the leadership may expire.
            () = self.expired() => {
                self.step_down();
                let reason = "the leadership was not renewed in time".to_owned();
                return Err(store::Error::Unavailable { reason });
            }
        };
        let leader = answer?;
        let leads = leader.node == node;
        self.until = (leads && leader.until.is_some()).then(|| asked + self.renewal.ttl);
        self.lead.set(leads);
        if self.leader.replace(leader.node) != Some(leader.node) {
            let name = self.name_of(leader.node).await;
            tracing::info!(leader.name = name, leader.term, is_this_node = leads, "a node leads");
        }
        Ok(leader)
    }

    /// The name of a node; its id if the store does not answer soon.
    async fn name_of(&self, node: NodeId) -> String {
        let nodes = tokio::time::timeout(self.renewal.ttl / 10, self.store.nodes()).await;
        let nodes = nodes.ok().and_then(Result::ok).unwrap_or_default();
        let known = nodes.into_iter().find(|it| it.id == node);
        known.map_or_else(|| node.to_string(), |it| it.joined.name)
    }

    /// Waits for the next try, and steps down if the leadership expires meanwhile.
    async fn sleep(&mut self, pause: Duration) {
        let start = Instant::now();
        if self.until.is_some_and(|until| until < start + pause) {
            self.expired().await;
            self.step_down();
        }
        tokio::time::sleep(pause.saturating_sub(start.elapsed())).await;
    }

    /// Waits until this node's leadership expires; for ever if it has none.
    async fn expired(&self) {
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
