//! The settings in the file: read beside the writer, changed by it.

use async_trait::async_trait;
use duly_core::ports::store::{
    self, ListSettings, Put, PutSettings, SettingsLog, VersionedSettings,
};
use duly_core::settings::Settings;
use duly_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::SqliteStore;
use super::error::{Fault, Result};

#[async_trait]
impl SettingsLog for SqliteStore {
    async fn settings(&self) -> store::Result<VersionedSettings> {
        self.readers.query(newest).await
    }

    async fn put_settings(&self, put: PutSettings) -> store::Result<Put> {
        self.ask(put).await
    }

    async fn settings_history(&self, page: ListSettings) -> store::Result<Vec<VersionedSettings>> {
        self.readers.query(move |connection| history(connection, page)).await
    }
}

/// The newest settings; the defaults before the first change.
pub(super) fn newest(connection: &Connection) -> Result<VersionedSettings> {
    let mut statement = connection.prepare_cached(
        "/* settings.newest */ SELECT version, changed_at, comment, body FROM settings
         ORDER BY version DESC LIMIT 1",
    )?;
    let found = statement.query_row([], |row| Ok(decode(row))).optional()?;
    found.unwrap_or_else(|| Ok(VersionedSettings::default()))
}

fn history(connection: &Connection, page: ListSettings) -> Result<Vec<VersionedSettings>> {
    let mut statement = connection.prepare_cached(
        "/* settings.history */ SELECT version, changed_at, comment, body FROM settings
         WHERE version < ? ORDER BY version DESC LIMIT ?",
    )?;
    let before = page.before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
    let mut rows = statement.query(params![before, page.limit])?;
    let mut versions = Vec::new();
    while let Some(row) = rows.next()? {
        match decode(row) {
            Ok(version) => versions.push(version),
            // One damaged row must not hide the others.
            Err(fault) if fault.is_bad_row() => {
                tracing::error!(%fault, "a version of the settings cannot be shown");
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(versions)
}

fn decode(row: &Row<'_>) -> Result<VersionedSettings> {
    let version: i64 = row.get(0)?;
    let body = row.get_ref(3)?.as_str().unwrap_or_default();
    let settings: Option<Settings> = serde_json::from_str(body).ok();
    let damaged = || Fault::Corrupt { table: "settings", column: "body", id: version.to_string() };
    Ok(VersionedSettings {
        version: version.unsigned_abs(),
        settings: settings.ok_or_else(damaged)?,
        changed_at: Some(Timestamp::clamped(row.get(1)?)),
        comment: row.get(2)?,
    })
}

/// The settings as text. Two that are equal have the same text.
pub(super) fn encode(settings: &Settings) -> String {
    serde_json::to_string(settings).expect("settings are JSON")
}
