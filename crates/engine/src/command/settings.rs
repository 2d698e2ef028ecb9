//! Read and change the settings.

use std::sync::Arc;

use duly_core::ports::store::{self, ListSettings, Put, PutSettings, VersionedSettings};
use duly_core::settings::{Settings, SettingsChange};
use tokio::sync::oneshot;

use crate::engine::Engine;

/// Why the settings were not changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// They are at another version than the caller expects.
    #[error("the settings are at version {current}")]
    VersionMismatch {
        /// Their current version.
        current: u64,
    },
    /// The version to roll back to never existed, or is no longer kept.
    #[error("there is no version {version} of the settings")]
    VersionNotFound {
        /// The missing version.
        version: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Engine {
    /// The newest settings.
    pub async fn settings(&self) -> store::Result<VersionedSettings> {
        let read = self.store().settings().await?;
        self.current_settings().update(read.clone());
        Ok(read)
    }

    /// The settings in effect on this node.
    pub async fn settings_in_effect(&self) -> store::Result<Arc<VersionedSettings>> {
        self.current_settings().get().await
    }

    /// Waits until settings newer than this version are in effect on this node.
    pub async fn settings_after(&self, version: u64) -> Arc<VersionedSettings> {
        self.current_settings().after(version).await
    }

    /// Versions of the settings, newest first.
    pub async fn settings_history(
        &self,
        page: ListSettings,
    ) -> store::Result<Vec<VersionedSettings>> {
        self.store().settings_history(page).await
    }

    /// Replaces the settings if they are at the expected version; at any version without one.
    /// They are in effect on this node when the call returns, also if the caller goes away.
    pub async fn put_settings(
        &self,
        expected: Option<u64>,
        change: SettingsChange,
    ) -> Result<VersionedSettings, Error> {
        let (answer, made) = oneshot::channel();
        // In a task of its own: if the caller goes away, the stored settings must still become
        // the settings in effect.
        let engine = self.clone();
        self.spawn(async move {
            answer.send(engine.make_settings(expected, change).await).ok();
        });
        let lost = |_| store::Error::Unavailable { reason: "the change was given up".to_owned() };
        made.await.map_err(lost)?
    }

    async fn make_settings(
        &self,
        expected: Option<u64>,
        change: SettingsChange,
    ) -> Result<VersionedSettings, Error> {
        let SettingsChange { settings, comment } = change;
        let mut put = PutSettings { expected: expected.unwrap_or(0), settings, comment };
        let version = loop {
            match self.store().put_settings(put.clone()).await? {
                Put::Done { version } => break version,
                Put::Conflict { current } if expected.is_some() => {
                    return Err(Error::VersionMismatch { current });
                }
                Put::Conflict { current } => put.expected = current,
            }
        };
        // In effect before they are read back, which may fail.
        let PutSettings { settings, comment, .. } = put;
        let known = VersionedSettings { version, settings, changed_at: None, comment };
        self.current_settings().update(known);
        self.settings_of(version).await
    }

    /// Makes a new version with the content of an old one; version 0 is the defaults.
    pub async fn roll_back_settings(
        &self,
        expected: Option<u64>,
        version: u64,
        comment: Option<String>,
    ) -> Result<VersionedSettings, Error> {
        let settings = match version {
            0 => Settings::default(),
            version => self.settings_of(version).await?.settings,
        };
        self.put_settings(expected, SettingsChange { settings, comment }).await
    }

    async fn settings_of(&self, version: u64) -> Result<VersionedSettings, Error> {
        let page = ListSettings { before: version.checked_add(1), limit: 1 };
        let found = self.store().settings_history(page).await?.pop();
        found.filter(|it| it.version == version).ok_or(Error::VersionNotFound { version })
    }
}
