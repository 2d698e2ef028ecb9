//! The client's calls about attempts and dead letters.

use std::fmt::Display;
use std::time::Duration;

use reqwest::Method;

use crate::error::Error;
use crate::http::{Client, encode, narrow};
use crate::wire::{
    AttemptPage, DeadLetterPage, ErrorGroupPage, PurgeDeadAnswer, PurgeDeadRequest,
    ReplayDeadAnswer, ReplayDeadRequest,
};

/// How long an order for many dead letters may take beyond the usual: it writes page by page.
const BULK_PATIENCE: Duration = Duration::from_secs(5 * 60);

impl Client {
    /// The failed and lost attempts of a task, oldest first.
    pub async fn list_attempts(&self, id: impl Display) -> Result<AttemptPage, Error> {
        let url = self.url(&["v1", "tasks", &id.to_string(), "attempts"]);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Reads one page of dead letters, last failure first.
    pub async fn list_dead_letters(
        &self,
        filter: &str,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<DeadLetterPage, Error> {
        let mut url = self.url(&["v1", "dlq"]);
        narrow(&mut url, filter, limit, cursor);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Dead letters by queue, type and error, the largest group first.
    pub async fn list_error_groups(
        &self,
        filter: &str,
        limit: Option<u32>,
    ) -> Result<ErrorGroupPage, Error> {
        let mut url = self.url(&["v1", "dlq", "groups"]);
        narrow(&mut url, filter, limit, None);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Runs dead letters again. Safe to repeat: what runs again is no dead letter any more.
    pub async fn replay_dead_letters(
        &self,
        order: &ReplayDeadRequest,
    ) -> Result<ReplayDeadAnswer, Error> {
        let url = self.url(&["v1", "dlq", "replay"]);
        self.call(Method::POST, url, Some(encode(order)), BULK_PATIENCE).await
    }

    /// Deletes dead letters for ever.
    pub async fn purge_dead_letters(
        &self,
        order: &PurgeDeadRequest,
    ) -> Result<PurgeDeadAnswer, Error> {
        let url = self.url(&["v1", "dlq", "purge"]);
        self.call(Method::POST, url, Some(encode(order)), BULK_PATIENCE).await
    }
}
