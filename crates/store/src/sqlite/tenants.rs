//! Tenants' records: queries, and the port.

use std::collections::BTreeMap;

use async_trait::async_trait;
use duly_core::name::TenantName;
use duly_core::ports::store::{self, Counted, PutTenant, TenantChange, TenantRecords, Usage};
use duly_core::settings::OwnRetention;
use duly_core::tenant::TenantRecord;
use duly_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::SqliteStore;
use super::error::{Fault, Result};
use crate::tenant_rules::retention_in;

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

    async fn own_retention(&self) -> store::Result<BTreeMap<TenantName, OwnRetention>> {
        self.readers.query(own_retention).await
    }

    async fn put_tenant(&self, put: PutTenant) -> store::Result<TenantChange> {
        self.ask(put).await
    }

    async fn usage(&self, tenant: &TenantName, of: Usage, up_to: u32) -> store::Result<Counted> {
        let tenant = tenant.clone();
        self.readers.query(move |connection| count(connection, &tenant, of, up_to)).await
    }
}

fn count(connection: &Connection, tenant: &TenantName, of: Usage, up_to: u32) -> Result<Counted> {
    let mut statement = connection.prepare_cached(match of {
        Usage::WaitingTasks => {
            "/* usage.tasks */ SELECT count(*) FROM (
                 SELECT 1 FROM lane JOIN due ON due.lane = lane.id WHERE lane.tenant = ?1
                 UNION ALL
                 SELECT 1 FROM lane JOIN blocked ON blocked.lane = lane.id WHERE lane.tenant = ?1
                 LIMIT ?2)"
        }
        Usage::Schedules => {
            "/* usage.schedules */ SELECT count(*) FROM (
                 SELECT 1 FROM schedule WHERE tenant = ?1 LIMIT ?2)"
        }
        Usage::Workflows => {
            "/* usage.workflows */ SELECT count(*) FROM (
                 SELECT 1 FROM workflow WHERE tenant = ?1 AND status = 0 LIMIT ?2)"
        }
    })?;
    let most = i64::from(up_to) + 1;
    let count: i64 = statement.query_row(params![tenant.as_str(), most], |row| row.get(0))?;
    Ok(Counted::up_to(up_to, usize::try_from(count).unwrap_or_default()))
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

/// Settings that set no retention say so in this text, which can stand in no string of theirs.
fn own_retention(connection: &Connection) -> Result<BTreeMap<TenantName, OwnRetention>> {
    let mut statement = connection.prepare_cached(
        "/* tenant.retention */ SELECT name, settings FROM tenant
         WHERE settings NOT LIKE '%\"retention\":null%'",
    )?;
    let mut rows = statement.query([])?;
    let mut own = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let damaged = Fault::Corrupt { table: "tenant", column: "name", id: name.clone() };
        let tenant = TenantName::new(&name).map_err(|_| damaged)?;
        own.extend(retention_in(&row.get::<_, String>(1)?).map(|retention| (tenant, retention)));
    }
    Ok(own)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrate;

    #[test]
    fn a_damaged_record_keeps_everything_for_ever() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate::up(&mut connection).unwrap();
        let insert = |name: &str, settings: &str| {
            let insert = "INSERT INTO tenant (name, version, quotas, settings, created_at)
                VALUES (?, 1, '{}', ?, 1)";
            connection.execute(insert, [name, settings]).unwrap();
        };
        insert("acme", r#"{"retention":null}"#);
        insert("beta", r#"{"retention":{"succ"#);
        let beta = TenantName::new("beta").unwrap();
        let expected = BTreeMap::from([(beta, OwnRetention::FOREVER)]);
        assert_eq!(own_retention(&connection).unwrap(), expected);
    }
}
