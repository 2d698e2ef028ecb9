//! Backups over HTTP.

use std::time::Duration;

use reqwest::{Method, Response};

use crate::error::Error;
use crate::http::Client;
use crate::wire::BackupState;

/// A copy of the server's store, to be read.
pub struct Backup {
    response: Response,
    url: String,
}

impl Client {
    /// Makes the server copy its store; returns when the copy is complete and can be read.
    pub async fn back_up(&self) -> Result<Backup, Error> {
        let response = self.open(Method::POST, self.url(&["v1", "admin", "backup"])).await?;
        Ok(Backup { response, url: self.base_url().to_string() })
    }

    /// The state of the server's backup.
    pub async fn backup_state(&self) -> Result<BackupState, Error> {
        self.call(Method::GET, self.url(&["v1", "admin", "backup"]), None, Duration::ZERO).await
    }
}

impl Backup {
    /// How much of the copy is left to read, if the server says so.
    pub fn bytes(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// The next piece of the copy; `None` at its end.
    pub async fn next(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, Error> {
        let chunk = self.response.chunk().await;
        chunk.map_err(|source| Error::Unreachable { url: self.url.clone(), source })
    }
}
