//! Attempts and dead letters over HTTP.

use std::fmt::Display;
use std::time::Duration;

use duly_core::limits::BULK_WAIT;
use reqwest::Method;

use crate::error::Error;
use crate::http::{Client, append_page, encode};
use crate::wire::{
    AttemptPage, DeadLetterPage, ErrorGroupPage, PurgeDeadAnswer, PurgeDeadRequest,
    ReplayDeadAnswer, ReplayDeadRequest,
};

impl Client {
    /// The failed and lost attempts of a task, oldest first.
    pub async fn list_attempts(&self, id: impl Display) -> Result<AttemptPage, Error> {
        let url = self.url(&["v1", "tasks", &id.to_string(), "attempts"]);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Reads one page of dead letters, latest failure first.
    pub async fn list_dead_letters(
        &self,
        filter: &str,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<DeadLetterPage, Error> {
        let mut url = self.url(&["v1", "dlq"]);
        append_page(&mut url, filter, limit, cursor);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Dead letters by queue, type and error, the largest group first.
    pub async fn list_error_groups(
        &self,
        filter: &str,
        limit: Option<u32>,
    ) -> Result<ErrorGroupPage, Error> {
        let mut url = self.url(&["v1", "dlq", "groups"]);
        append_page(&mut url, filter, limit, None);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Starts a bulk action that replays dead letters, and waits 10 s at most for its end. Safe to
    /// repeat: a replayed task is no longer a dead letter.
    pub async fn replay_dead_letters(
        &self,
        order: &ReplayDeadRequest,
    ) -> Result<ReplayDeadAnswer, Error> {
        let url = self.url(&["v1", "dlq", "replay"]);
        self.call(Method::POST, url, Some(encode(order)), BULK_WAIT).await
    }

    /// Starts a bulk action that deletes dead letters, and waits 10 s at most for its end.
    pub async fn purge_dead_letters(
        &self,
        order: &PurgeDeadRequest,
    ) -> Result<PurgeDeadAnswer, Error> {
        let url = self.url(&["v1", "dlq", "purge"]);
        self.call(Method::POST, url, Some(encode(order)), BULK_WAIT).await
    }
}
