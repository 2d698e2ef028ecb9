//! API keys over HTTP.

use std::time::Duration;

use reqwest::Method;

use crate::error::Error;
use crate::http::{Client, append_page, encode};
use crate::wire::{CreatedKeyView, KeyPage, KeyRequest, KeyView};

impl Client {
    /// Creates a key; the answer has its secret, which nobody can read again.
    pub async fn create_key(&self, request: &KeyRequest) -> Result<CreatedKeyView, Error> {
        let url = self.url(&["v1", "keys"]);
        self.call(Method::POST, url, Some(encode(request)), Duration::ZERO).await
    }

    /// Reads one page of keys, oldest first: those of the tenant, or those for the installation.
    pub async fn list_keys(
        &self,
        installation: bool,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<KeyPage, Error> {
        let mut url = self.url(&["v1", "keys"]);
        append_page(&mut url, "", limit, cursor);
        if installation {
            url.query_pairs_mut().append_pair("installation", "true");
        }
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Revokes a key for good.
    pub async fn revoke_key(&self, id: &str) -> Result<KeyView, Error> {
        let url = self.url(&["v1", "keys", id]);
        self.call(Method::DELETE, url, None, Duration::ZERO).await
    }
}
