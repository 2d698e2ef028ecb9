//! Queues over HTTP.

use std::fmt::Display;
use std::time::Duration;

use reqwest::Method;

use crate::error::Error;
use crate::http::{Client, append_page, encode};
use crate::wire::{ExplainView, PauseRequest, QueuePage, QueueView};

impl Client {
    /// Reads one page of queues, by name.
    pub async fn list_queues(
        &self,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<QueuePage, Error> {
        let mut url = self.url(&["v1", "queues"]);
        append_page(&mut url, "", limit, cursor);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Reads one queue and its counts.
    pub async fn queue_stats(&self, queue: &str) -> Result<QueueView, Error> {
        let url = self.url(&["v1", "queues", queue, "stats"]);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Pauses a queue: none of its tasks starts; running tasks go on.
    pub async fn pause_queue(&self, queue: &str, order: &PauseRequest) -> Result<QueueView, Error> {
        let url = self.url(&["v1", "queues", queue, "pause"]);
        self.call(Method::POST, url, Some(encode(order)), Duration::ZERO).await
    }

    /// Ends the pause of a queue.
    pub async fn resume_queue(&self, queue: &str) -> Result<QueueView, Error> {
        let url = self.url(&["v1", "queues", queue, "resume"]);
        self.call(Method::POST, url, Some("{}".into()), Duration::ZERO).await
    }

    /// Explains why a task does not run.
    pub async fn explain_task(&self, id: impl Display) -> Result<ExplainView, Error> {
        let url = self.url(&["v1", "tasks", &id.to_string(), "explain"]);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }
}
