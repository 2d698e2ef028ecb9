//! The installation's settings, version by version.

use async_trait::async_trait;

use super::Result;
use crate::settings::Settings;
use crate::time::Timestamp;

/// The settings as they were at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VersionedSettings {
    /// Counts the changes; 0 before the first.
    pub version: u64,
    /// All of them.
    pub settings: Settings,
    /// When they became so; nothing before the first change.
    pub changed_at: Option<Timestamp>,
    /// Why, for people.
    pub comment: Option<String>,
}

/// A change to the settings.
#[derive(Clone, Debug, PartialEq)]
pub struct PutSettings {
    /// The version that it is based on.
    pub expected: u64,
    /// What they are from now on.
    pub settings: Settings,
    /// Why, for people.
    pub comment: Option<String>,
}

/// What became of a change to the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The settings are so now, under this version.
    Done {
        /// The version.
        version: u64,
    },
    /// They were changed before this call; nothing changed.
    Conflict {
        /// Their version now.
        current: u64,
    },
}

/// Which part of the settings' history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListSettings {
    /// Only versions below this one.
    pub before: Option<u64>,
    /// How many.
    pub limit: u32,
}

/// The settings and their history. The store itself goes by the newest `loss_limit`, from the
/// next lease that it takes back.
#[async_trait]
pub trait SettingsLog {
    /// The newest settings; the defaults, as version 0, before the first change.
    async fn settings(&self) -> Result<VersionedSettings>;

    /// Makes the version after the expected one, if that is the newest. Repeated with the same
    /// content it is done, as long as there is no newer one. The last
    /// [`crate::limits::SETTINGS_VERSIONS`] are kept.
    async fn put_settings(&self, put: PutSettings) -> Result<Put>;

    /// Versions that are kept, newest first.
    async fn settings_history(&self, page: ListSettings) -> Result<Vec<VersionedSettings>>;
}
