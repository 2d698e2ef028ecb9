//! The loop that removes events which every sink has received, and suspends sinks that are too far behind.
//! The leader runs it. Without sinks and stored events it sleeps.

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::NodeId;
use duly_core::limits::{SINK_AGE, SINK_ROWS};
use duly_core::ports::store::{self, Store, Tidied, TidyEvents};
use tokio_util::sync::CancellationToken;

use super::sinks::Sinks;
use crate::leader::Leadership;

/// How often to remove events while there are sinks.
const EVERY: Duration = Duration::from_secs(5);
/// How often to look for sinks of other nodes.
const SHARED_POLL: Duration = Duration::from_secs(30);
/// How far sinks may be behind.
const LIMITS: TidyEvents = TidyEvents { rows: SINK_ROWS, age: SINK_AGE };

pub(crate) struct Keeper {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sinks: Arc<Sinks>,
}

impl Keeper {
    /// Runs while this node leads, until shutdown.
    pub(crate) async fn run(self, lead: Leadership, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = lead.while_leading(|| self.keep_tidying()) => {}
        }
    }

    async fn keep_tidying(&self) {
        loop {
            let idle = match self.run_once().await {
                Ok(idle) => idle,
                Err(error) => {
                    tracing::debug!(%error, "old events wait for the store");
                    false
                }
            };
            if idle {
                self.wait_for_sinks().await;
            } else {
                tokio::time::sleep(EVERY).await;
            }
        }
    }

    async fn wait_for_sinks(&self) {
        let is_alone = self.store.node() == NodeId::ONLY;
        let poll = if is_alone { Duration::MAX } else { SHARED_POLL };
        tokio::select! {
            () = self.sinks.stored() => {}
            () = tokio::time::sleep(poll) => {}
        }
    }

    /// Removes what can be removed. Whether there is nothing left to do until there is a sink.
    async fn run_once(&self) -> store::Result<bool> {
        if self.store.sinks().await?.is_empty() && self.store.event_rows().await? == 0 {
            return Ok(true);
        }
        loop {
            let Tidied { removed, suspended, expired } = self.store.tidy_events(LIMITS).await?;
            for sink in &suspended {
                tracing::warn!(%sink, "the sink is too far behind and receives no events any more");
            }
            for sink in &expired {
                tracing::debug!(%sink, "no reader has asked for these events lately");
            }
            if removed == 0 {
                return Ok(false);
            }
        }
    }
}
