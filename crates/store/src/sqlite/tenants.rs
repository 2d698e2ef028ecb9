//! Tenants' records: queries, and the port.

use async_trait::async_trait;
use duly_core::name::TenantName;
use duly_core::ports::store::{self, PutTenant, TenantChange, TenantRecords};
use duly_core::tenant::TenantRecord;
use duly_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::SqliteStore;
use super::error::{Fault, Result};

#[async_trait]
impl TenantRecords for SqliteStore {
    async fn tenants(
        &self,
        after: Option<TenantName>,
        limit: u32,
    ) -> store::Result<Vec<TenantRecord>> {
        self.readers.query(move |connection| list(connection, after.as_ref(), limit)).await
    }

    async fn tenant(&self, name: &TenantName) -> store::Result<Option<TenantRecord>> {
        let name = name.clone();
        self.readers.query(move |connection| find(connection, &name)).await
    }

    async fn put_tenant(&self, put: PutTenant) -> store::Result<TenantChange> {
        self.ask(put).await
    }
}

pub(super) fn find(connection: &Connection, name: &TenantName) -> Result<Option<TenantRecord>> {
    let mut statement = connection.prepare_cached(
        "/* tenant.get */ SELECT name, version, suspended_at, note, quotas, settings, created_at
         FROM tenant WHERE name = ?",
    )?;
    statement.query_row([name.as_str()], |row| Ok(decode(row))).optional()?.transpose()
}

fn list(
    connection: &Connection,
    after: Option<&TenantName>,
    limit: u32,
) -> Result<Vec<TenantRecord>> {
    let mut statement = connection.prepare_cached(
        "/* tenant.list */ SELECT name, version, suspended_at, note, quotas, settings, created_at
         FROM tenant WHERE name > ? ORDER BY name LIMIT ?",
    )?;
    let mut rows = statement.query(params![after.map_or("", TenantName::as_str), limit])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        match decode(row) {
            Ok(record) => records.push(record),
            // One damaged row must not hide the others.
            Err(fault) if fault.is_bad_row() => {
                tracing::error!(%fault, "the record of a tenant cannot be read");
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(records)
}

fn decode(row: &Row<'_>) -> Result<TenantRecord> {
    let name: String = row.get(0)?;
    let damaged = |column| Fault::Corrupt { table: "tenant", column, id: name.clone() };
    let text = |index| -> Result<String> { Ok(row.get(index)?) };
    Ok(TenantRecord {
        name: TenantName::new(&name).map_err(|_| damaged("name"))?,
        version: row.get(1)?,
        suspended_at: row.get::<_, Option<i64>>(2)?.map(Timestamp::clamped),
        note: row.get(3)?,
        quotas: serde_json::from_str(&text(4)?).map_err(|_| damaged("quotas"))?,
        settings: serde_json::from_str(&text(5)?).map_err(|_| damaged("settings"))?,
        created_at: Timestamp::clamped(row.get(6)?),
    })
}
