//! Listing and draining workers over HTTP.

use std::time::Duration;

use duly_core::id::SessionId;
use reqwest::Method;

use crate::error::Error;
use crate::http::{Client, encode};
use crate::wire::{DrainRequest, WorkerList, WorkerView};

/// How long a drain may wait for a claim that is being granted.
const DRAIN_WAIT: Duration = Duration::from_secs(30);

impl Client {
    /// Lists the workers.
    pub async fn workers(&self) -> Result<WorkerList, Error> {
        let url = self.url(&["v1", "workers"]);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Drains a worker: it finishes what it holds and claims nothing more. `false` ends the drain.
    pub async fn drain_worker(&self, id: SessionId, drain: bool) -> Result<WorkerView, Error> {
        let url = self.url(&["v1", "workers", &id.to_string(), "drain"]);
        let order = encode(&DrainRequest { drain: Some(drain) });
        self.call(Method::POST, url, Some(order), DRAIN_WAIT).await
    }
}
