//! The loop that serves sinks. One node at a time serves a sink, under a lease with a term; this loop takes
//! the leases that it can get and renews them, and a [`Courier`] for each of them delivers the events. So a
//! sink that is slow or fails delays no other, and nothing here keeps a task waiting.

mod courier;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use duly_core::event::SinkName;
use duly_core::id::NodeId;
use duly_core::node::Role;
use duly_core::ports::store::{self, HeldSink, HoldSinks, Store};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use self::courier::Courier;
use super::sinks::Sinks;
use super::written::Written;
use crate::renewal::Renewal;

/// For how long a process holds a sink on a store of its own: no other process can take it.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

pub(crate) struct Relay {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sinks: Arc<Sinks>,
    pub(crate) written: Arc<Written>,
    pub(crate) renewal: Renewal,
}

/// The couriers under way.
#[derive(Default)]
struct Couriers {
    running: HashMap<SinkName, Running>,
    tasks: JoinSet<()>,
}

struct Running {
    term: u64,
    stop: CancellationToken,
    courier: AbortHandle,
}

impl Relay {
    /// Runs until shutdown, then lets other nodes serve the sinks.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let mut couriers = Couriers::default();
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.keep_serving(&mut couriers) => {}
        }
        let served = !couriers.running.is_empty();
        couriers.tasks.shutdown().await;
        if served && let Err(error) = self.store.release_sinks(self.store.node()).await {
            tracing::debug!(%error, "cannot release sinks; other nodes take them over later");
        }
    }

    async fn keep_serving(&self, couriers: &mut Couriers) {
        let mut round = 0_u64;
        loop {
            let names = self.sinks.names();
            let pause = if names.is_empty() && couriers.running.is_empty() {
                None
            } else {
                match self.run_once(names, round, couriers).await {
                    Ok(()) if self.is_alone() => None,
                    Ok(()) => Some(self.renewal.interval()),
                    Err(error) => {
                        tracing::debug!(%error, "sinks wait for the store");
                        Some(self.renewal.retry_delay())
                    }
                }
            };
            round += 1;
            tokio::select! {
                () = self.sinks.changed() => {}
                // One that has ended by itself may be wanted again.
                Some(_) = couriers.tasks.join_next() => {
                    tokio::time::sleep(self.renewal.retry_delay()).await;
                }
                () = tokio::time::sleep(pause.unwrap_or(Duration::MAX)) => {}
            }
        }
    }

    /// Takes sinks and renews those it has; starts and ends couriers accordingly.
    async fn run_once(
        &self,
        names: Vec<SinkName>,
        round: u64,
        couriers: &mut Couriers,
    ) -> store::Result<()> {
        let most = self.most(names.len(), round).await?;
        let ttl = if self.is_alone() { FOR_EVER } else { self.renewal.ttl };
        let order = HoldSinks { node: self.store.node(), ttl, names, most };
        let held = self.store.hold_sinks(order).await?;
        couriers.keep(&held);
        for sink in held {
            if !couriers.running.contains_key(&sink.name) {
                self.start(sink, couriers);
            }
        }
        Ok(())
    }

    /// How many sinks to hold: at first a share, so that nodes that start together divide them; in the next
    /// round whatever no other node has taken.
    async fn most(&self, sinks: usize, round: u64) -> store::Result<usize> {
        if self.is_alone() || !round.is_multiple_of(2) {
            return Ok(sinks);
        }
        let nodes = self.store.nodes().await?;
        let relays = nodes.iter().filter(|it| it.joined.roles.contains(&Role::Scheduler)).count();
        Ok(sinks.div_ceil(relays.max(1)))
    }

    fn start(&self, held: HeldSink, couriers: &mut Couriers) {
        let Some(sink) = self.sinks.get(&held.name) else { return };
        let stop = CancellationToken::new();
        let (name, term) = (held.name.clone(), held.term);
        let courier = Courier {
            store: Arc::clone(&self.store),
            sink,
            listener: self.written.listen(&*self.store),
            name: held.name,
            term: held.term,
            position: held.position,
        };
        let until = stop.clone();
        let courier = couriers.tasks.spawn(async move {
            until.run_until_cancelled(courier.run()).await;
        });
        couriers.running.insert(name, Running { term, stop, courier });
    }

    fn is_alone(&self) -> bool {
        self.store.node() == NodeId::ONLY
    }
}

impl Couriers {
    /// Ends those of sinks that this node does not hold any more, or holds under another term; forgets those
    /// that have ended.
    fn keep(&mut self, held: &[HeldSink]) {
        self.running.retain(|name, running| {
            let is_held = held.iter().any(|it| it.name == *name && it.term == running.term);
            if !is_held {
                running.stop.cancel();
            }
            is_held && !running.courier.is_finished()
        });
    }
}
