//! The reference model's settings: all versions that are kept, oldest first.

use async_trait::async_trait;
use duly_core::event::Event;
use duly_core::limits::SETTINGS_VERSIONS;
use duly_core::ports::store::{
    ListSettings, Put, PutSettings, Result, SettingsLog, VersionedSettings,
};
use duly_core::time::Timestamp;

use super::MemoryStore;
use super::model::Model;
use crate::audited;

#[async_trait]
impl SettingsLog for MemoryStore {
    async fn settings(&self) -> Result<VersionedSettings> {
        Ok(self.model.lock().newest_settings())
    }

    async fn put_settings(&self, put: PutSettings) -> Result<Put> {
        Ok(self.order(audited::put_settings, |model, now| model.put_settings(put, now)))
    }

    async fn settings_history(&self, page: ListSettings) -> Result<Vec<VersionedSettings>> {
        let model = self.model.lock();
        let newest_first = model.settings.iter().rev();
        let below = newest_first.filter(|it| page.before.is_none_or(|end| it.version < end));
        Ok(below.take(page.limit as usize).cloned().collect())
    }
}

impl Model {
    pub(super) fn newest_settings(&self) -> VersionedSettings {
        self.settings.last().cloned().unwrap_or_default()
    }

    /// The losses that end a task now.
    pub(super) fn loss_limit(&self) -> u32 {
        self.newest_settings().settings.loss_limit.unwrap_or(self.rules.loss_limit)
    }

    fn put_settings(&mut self, put: PutSettings, now: Timestamp) -> Put {
        let newest = self.newest_settings();
        let PutSettings { expected, settings, comment } = put;
        let repeated = expected.checked_add(1) == Some(newest.version)
            && newest.settings == settings
            && newest.comment == comment;
        if repeated {
            return Put::Done { version: newest.version };
        }
        if newest.version != expected {
            return Put::Conflict { current: newest.version };
        }
        let version = expected + 1;
        let changed_at = Some(now);
        self.settings.push(VersionedSettings { version, settings, changed_at, comment });
        let surplus = self.settings.len().saturating_sub(SETTINGS_VERSIONS as usize);
        self.settings.drain(..surplus);
        self.emit(Event::settings_changed(version, now));
        Put::Done { version }
    }
}
