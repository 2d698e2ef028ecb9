//! A remote worker that holds leases and never starts them, so that queries find running tasks.

use std::time::Duration;

use anyhow::ensure;
use duly_client::Client;
use duly_client::wire::{ClaimRequest, HeartbeatRequest, RegisterRequest};
use duly_core::id::SessionId;
use tokio::task::JoinSet;

use super::fill::UNSERVED;
use crate::commands::bench::BATCH;

pub(super) struct HeldLeases {
    client: Client,
    session: SessionId,
    _heartbeats: JoinSet<()>,
}

impl HeldLeases {
    /// Claims as many leases as one claim allows.
    pub(super) async fn claim(url: &str) -> anyhow::Result<Self> {
        const SEQ: u64 = 1;
        let client = Client::new(url, None)?;
        let types = vec![UNSERVED.to_owned()];
        let worker = client.register(&RegisterRequest { types, ..Default::default() }).await?;
        let session = worker.session_id;
        let claim = ClaimRequest::new(session, SEQ, BATCH);
        let leases = client.claim(&claim).await?.leases.len();
        ensure!(leases > 0, "no lease was granted");
        let mut heartbeats = JoinSet::new();
        let (sender, every) = (client.clone(), Duration::from_secs_f64(worker.heartbeat_seconds));
        heartbeats.spawn(async move {
            let heartbeat = HeartbeatRequest { received: vec![SEQ], ..HeartbeatRequest::default() };
            let mut ticks = tokio::time::interval(every);
            loop {
                ticks.tick().await;
                // A single failure does not matter; many end the leases.
                sender.heartbeat(session, &heartbeat).await.ok();
            }
        });
        Ok(Self { client, session, _heartbeats: heartbeats })
    }

    /// Releases the leases; fails if the session was lost.
    pub(super) async fn release(self) -> anyhow::Result<()> {
        Ok(self.client.end_session(self.session).await?)
    }
}
