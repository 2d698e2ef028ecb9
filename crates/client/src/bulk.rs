//! Orders for many tasks over HTTP.

use std::fmt::Display;
use std::time::Duration;

use reqwest::Method;

use crate::error::Error;
use crate::http::{Client, encode, narrow};
use crate::wire::{BulkAnswer, BulkPage, BulkRequest, BulkView};

impl Client {
    /// Orders something for many tasks, or tells what would be done.
    pub async fn bulk(&self, order: &BulkRequest) -> Result<BulkAnswer, Error> {
        let url = self.url(&["v1", "bulk-actions"]);
        self.call(Method::POST, url, Some(encode(order)), Duration::ZERO).await
    }

    /// Reads how far an order is; with `wait`, as soon as it has ended or the time is over.
    pub async fn get_bulk(
        &self,
        id: impl Display,
        wait: Option<Duration>,
    ) -> Result<BulkView, Error> {
        let mut url = self.url(&["v1", "bulk-actions", &id.to_string()]);
        if let Some(wait) = wait {
            url.query_pairs_mut().append_pair("wait", &format!("{}ms", wait.as_millis()));
        }
        self.call(Method::GET, url, None, wait.unwrap_or_default()).await
    }

    /// Reads one page of orders, newest first.
    pub async fn list_bulk(
        &self,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<BulkPage, Error> {
        let mut url = self.url(&["v1", "bulk-actions"]);
        narrow(&mut url, "", limit, cursor);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Stops an order: what is done stays done.
    pub async fn abort_bulk(&self, id: impl Display) -> Result<BulkView, Error> {
        let url = self.url(&["v1", "bulk-actions", &id.to_string(), "abort"]);
        self.call(Method::POST, url, Some("{}".into()), Duration::ZERO).await
    }
}
