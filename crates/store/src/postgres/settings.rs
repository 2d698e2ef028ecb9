//! The settings: read as they are now, changed by one node at a time.

use async_trait::async_trait;
use duly_core::ports::store::{
    self, ListSettings, Put, PutSettings, SettingsLog, VersionedSettings,
};
use duly_core::settings::Settings;
use tokio_postgres::Row;

use super::PostgresStore;
use super::error::{Fault, Result};
use super::row;
use super::snapshot::Snapshot;

#[async_trait]
impl SettingsLog for PostgresStore {
    async fn settings(&self) -> store::Result<VersionedSettings> {
        let mut client = self.pool.get().await?;
        let snapshot = Snapshot::take(&mut client).await?;
        let newest = snapshot.query_opt(NEWEST, &[]).await?;
        Ok(newest.as_ref().map_or_else(|| Ok(VersionedSettings::default()), decode)?)
    }

    async fn put_settings(&self, put: PutSettings) -> store::Result<Put> {
        Ok(self.run(&put).await?)
    }

    async fn settings_history(&self, page: ListSettings) -> store::Result<Vec<VersionedSettings>> {
        let select = "/* settings.history */ SELECT version, changed_at, comment, body
            FROM duly.settings WHERE version < $1 ORDER BY version DESC LIMIT $2";
        let mut client = self.pool.get().await?;
        let snapshot = Snapshot::take(&mut client).await?;
        let before = page.before.map_or(i64::MAX, |it| i64::try_from(it).unwrap_or(i64::MAX));
        let rows = snapshot.query(select, &[&before, &i64::from(page.limit)]).await?;
        let mut versions = Vec::new();
        for row in &rows {
            match decode(row) {
                Ok(version) => versions.push(version),
                // One damaged row must not hide the others.
                Err(fault @ Fault::Corrupt { .. }) => {
                    tracing::error!(%fault, "a version of the settings cannot be shown");
                }
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(versions)
    }
}

/// The newest version as it is written.
pub(super) const NEWEST: &str = "/* settings.newest */ SELECT version, changed_at, comment, body
    FROM duly.settings ORDER BY version DESC LIMIT 1";

/// Reads a row of [`NEWEST`].
pub(super) fn decode(row: &Row) -> Result<VersionedSettings> {
    let version: i64 = row.try_get(0)?;
    let settings: Option<Settings> = serde_json::from_str(row.try_get(3)?).ok();
    let damaged = || Fault::Corrupt { table: "settings", column: "body", id: version.to_string() };
    Ok(VersionedSettings {
        version: version.unsigned_abs(),
        settings: settings.ok_or_else(damaged)?,
        changed_at: Some(row::instant(row.try_get(1)?)),
        comment: row.try_get(2)?,
    })
}

/// The settings as text. Two that are equal have the same text.
pub(super) fn encode(settings: &Settings) -> String {
    serde_json::to_string(settings).expect("settings are JSON")
}
