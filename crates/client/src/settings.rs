//! Settings over HTTP.

use std::time::Duration;

use reqwest::Method;

use crate::error::Error;
use crate::http::{Client, append_page, encode};
use crate::wire::{RollbackRequest, SettingsAnswer, SettingsPage, SettingsRequest};

impl Client {
    /// The newest settings.
    pub async fn get_settings(&self) -> Result<SettingsAnswer, Error> {
        self.call(Method::GET, self.url(&["v1", "settings"]), None, Duration::ZERO).await
    }

    /// Replaces the settings if they are at this version. Safe to repeat: the answer is the same
    /// until they change again.
    pub async fn put_settings(
        &self,
        version: u64,
        settings: &SettingsRequest,
    ) -> Result<SettingsAnswer, Error> {
        let url = self.url(&["v1", "settings"]);
        self.call_if(version, Method::PUT, url, encode(settings)).await
    }

    /// Reads one page of versions of the settings, newest first.
    pub async fn settings_history(
        &self,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<SettingsPage, Error> {
        let mut url = self.url(&["v1", "settings", "history"]);
        append_page(&mut url, "", limit, cursor);
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Makes a new version with the content of an old one, if the settings are at this version.
    pub async fn roll_back_settings(
        &self,
        version: u64,
        order: &RollbackRequest,
    ) -> Result<SettingsAnswer, Error> {
        let url = self.url(&["v1", "settings", "rollback"]);
        self.call_if(version, Method::POST, url, encode(order)).await
    }
}
