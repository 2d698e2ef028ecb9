//! Read and change the settings.

use std::sync::Arc;

use duly_core::ports::store::{self, ListSettings, Put, PutSettings, VersionedSettings};
use duly_core::settings::{Settings, SettingsChange};
use tokio::sync::oneshot;

use crate::engine::Engine;

/// Why the settings were not changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// They are not as the caller believes.
    #[error("the settings are at version {current}")]
    VersionMismatch {
        /// Their version now.
        current: u64,
    },
    /// The version to go back to was never made, or is no longer kept.
    #[error("there is no version {version} of the settings")]
    VersionNotFound {
        /// Which.
        version: u64,
    },
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Engine {
    /// The newest settings.
    pub async fn settings(&self) -> store::Result<VersionedSettings> {
        let read = self.store().settings().await?;
        self.current_settings().learn(read.clone());
        Ok(read)
    }

    /// The settings that this node goes by.
    pub async fn settings_in_effect(&self) -> store::Result<Arc<VersionedSettings>> {
        self.current_settings().get().await
    }

    /// Waits until this node goes by settings that are newer than this version.
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

    /// Replaces the settings, if they are at the expected version; whatever they are if it does
    /// not say. From the answer on this node goes by them, and also if nobody waits for it.
    pub async fn put_settings(
        &self,
        expected: Option<u64>,
        change: SettingsChange,
    ) -> Result<VersionedSettings, Error> {
        let (answer, made) = oneshot::channel();
        // On its own: a caller who goes away must not part what is stored from what holds.
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
        // Learnt before they are read back, which may fail.
        let PutSettings { settings, comment, .. } = put;
        let known = VersionedSettings { version, settings, changed_at: None, comment };
        self.current_settings().learn(known);
        self.settings_of(version).await
    }

    /// Makes a new version with the content of an old one; 0 stands for the defaults.
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
