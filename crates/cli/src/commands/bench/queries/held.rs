//! A worker elsewhere that holds leases and never starts them, so that there are running tasks to
//! ask for.

use std::time::Duration;

use anyhow::ensure;
use duly_client::Client;
use duly_client::wire::{ClaimRequest, HeartbeatRequest, RegisterRequest};
use duly_core::id::SessionId;
use tokio::task::JoinSet;

use super::fill::UNSERVED;
use crate::commands::bench::BATCH;

pub(super) struct Held {
    client: Client,
    session: SessionId,
    _heart: JoinSet<()>,
}

impl Held {
    /// Takes as many leases as one claim may, of the tasks that wait for longest.
    pub(super) async fn claim(url: &str) -> anyhow::Result<Self> {
        const SEQ: u64 = 1;
        let client = Client::new(url, None)?;
        let types = vec![UNSERVED.to_owned()];
        let worker = client.register(&RegisterRequest { types, ..Default::default() }).await?;
        let session = worker.session_id;
        let claim = ClaimRequest::new(session, SEQ, BATCH);
        let leases = client.claim(&claim).await?.leases.len();
        ensure!(leases > 0, "no task runs");
        let mut heart = JoinSet::new();
        let (beating, every) = (client.clone(), Duration::from_secs_f64(worker.heartbeat_seconds));
        heart.spawn(async move {
            let beat = HeartbeatRequest { received: vec![SEQ], ..HeartbeatRequest::default() };
            let mut beats = tokio::time::interval(every);
            loop {
                beats.tick().await;
                // One that is missed does not matter, and many end the leases.
                beating.heartbeat(session, &beat).await.ok();
            }
        });
        Ok(Self { client, session, _heart: heart })
    }

    /// Gives them back; fails if they were lost on the way.
    pub(super) async fn release(self) -> anyhow::Result<()> {
        Ok(self.client.end_session(self.session).await?)
    }
}
