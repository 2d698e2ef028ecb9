//! Bulk actions over HTTP.

use std::fmt::Display;
use std::time::Duration;

use reqwest::Method;

use crate::error::Error;
use crate::http::{Client, append_page, append_wait, encode};
use crate::wire::{BulkAnswer, BulkPage, BulkRequest, BulkView};

impl Client {
    /// Starts a bulk action, or previews it.
    pub async fn bulk(&self, order: &BulkRequest) -> Result<BulkAnswer, Error> {
        let url = self.url(&["v1", "bulk-actions"]);
        self.call(Method::POST, url, Some(encode(order)), Duration::ZERO).await
    }

    /// Reads a bulk action; with `wait`, when it has ended or the time is over.
    pub async fn get_bulk(
        &self,
        id: impl Display,
        wait: Option<Duration>,
    ) -> Result<BulkView, Error> {
        let mut url = self.url(&["v1", "bulk-actions", &id.to_string()]);
        append_wait(&mut url, wait);
        self.call(Method::GET, url, None, wait.unwrap_or_default()).await
    }

    /// Reads one page of bulk actions, newest first.
    pub async fn list_bulk(
        &self,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<BulkPage, Error> {
        let mut url = self.url(&["v1", "bulk-actions"]);
        append_page(&mut url, "", limit, cursor);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Stops a bulk action. Changes that it has made stay.
    pub async fn abort_bulk(&self, id: impl Display) -> Result<BulkView, Error> {
        let url = self.url(&["v1", "bulk-actions", &id.to_string(), "abort"]);
        self.call(Method::POST, url, Some("{}".into()), Duration::ZERO).await
    }
}
