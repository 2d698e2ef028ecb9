//! Tenants' records: queries, and the port.

use std::collections::BTreeMap;

use async_trait::async_trait;
use duly_core::name::TenantName;
use duly_core::ports::store::{self, Counted, PutTenant, TenantChange, TenantRecords, Usage};
use duly_core::settings::OwnRetention;
use duly_core::tenant::TenantRecord;
use tokio_postgres::Row;

use super::PostgresStore;
use super::error::{Fault, Result};
use super::row;
use crate::tenant_rules::retention_in;

#[async_trait]
impl TenantRecords for PostgresStore {
    async fn tenants(
        &self,
        after: Option<TenantName>,
        limit: u32,
    ) -> store::Result<Vec<TenantRecord>> {
        let after = after.as_ref().map_or("", TenantName::as_str);
        let select = select("list", "name > $1 ORDER BY name LIMIT $2");
        let mut records = Vec::new();
        for row in &self.pool.query(&select, &[&after, &i64::from(limit)]).await? {
            match decode(row) {
                Ok(record) => records.push(record),
                // One damaged row must not hide the others.
                Err(fault @ Fault::Corrupt { .. }) => {
                    tracing::error!(%fault, "the record of a tenant cannot be read");
                }
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(records)
    }

    async fn tenant(&self, name: &TenantName) -> store::Result<Option<TenantRecord>> {
        let found = self.pool.query(&select("get", "name = $1"), &[&name.as_str()]).await?;
        Ok(found.first().map(decode).transpose()?)
    }

    async fn own_retention(&self) -> store::Result<BTreeMap<TenantName, OwnRetention>> {
        // Settings that set no retention say so in this text, which can stand in no string of theirs.
        let select = "/* tenant.retention */ SELECT name, settings FROM duly.tenant
            WHERE settings NOT LIKE '%\"retention\":null%'";
        let mut own = BTreeMap::new();
        for row in &self.pool.query(select, &[]).await? {
            let (name, settings) = decode_retention(row)?;
            own.extend(retention_in(settings).map(|retention| (name, retention)));
        }
        Ok(own)
    }

    async fn put_tenant(&self, put: PutTenant) -> store::Result<TenantChange> {
        let change = self.run(&put).await?;
        if let TenantChange::Done { record, .. } = &change {
            self.pauses.set_suspended(&record.name, record.suspended_at.is_some());
        }
        Ok(change)
    }

    async fn usage(&self, tenant: &TenantName, of: Usage, up_to: u32) -> store::Result<Counted> {
        let count = match of {
            Usage::WaitingTasks => {
                "/* usage.tasks */ SELECT count(*) FROM (
                    SELECT FROM duly.lane l JOIN duly.due d ON d.lane = l.id WHERE l.tenant = $1
                    UNION ALL
                    SELECT FROM duly.lane l JOIN duly.blocked b ON b.lane = l.id
                    WHERE l.tenant = $1
                    LIMIT $2) few"
            }
            Usage::Schedules => {
                "/* usage.schedules */ SELECT count(*) FROM (
                    SELECT FROM duly.schedule WHERE tenant = $1 LIMIT $2) few"
            }
            Usage::Workflows => {
                "/* usage.workflows */ SELECT count(*) FROM (
                    SELECT FROM duly.workflow WHERE tenant = $1 AND status = 0 LIMIT $2) few"
            }
        };
        let most = i64::from(up_to) + 1;
        let found = self.pool.query(count, &[&tenant.as_str(), &most]).await?;
        let count: i64 = found.first().map_or(Ok(0), |row| row.try_get(0)).map_err(Fault::from)?;
        Ok(Counted::up_to(up_to, usize::try_from(count).unwrap_or_default()))
    }
}

/// A query for records, for [`decode`].
pub(super) fn select(name: &str, condition: &str) -> String {
    format!(
        "/* tenant.{name} */ SELECT name, version, suspended_at, note, quotas, settings, created_at
         FROM duly.tenant WHERE {condition}"
    )
}

fn decode_retention(found: &Row) -> Result<(TenantName, &str)> {
    let name: &str = found.try_get(0)?;
    let damaged = |_| Fault::Corrupt { table: "tenant", column: "name", id: name.to_owned() };
    Ok((TenantName::new(name).map_err(damaged)?, found.try_get(1)?))
}

pub(super) fn decode(found: &Row) -> Result<TenantRecord> {
    let name: &str = found.try_get(0)?;
    let damaged = |column| Fault::Corrupt { table: "tenant", column, id: name.to_owned() };
    let text = |index| Ok::<_, Fault>(found.try_get::<_, &str>(index)?);
    Ok(TenantRecord {
        name: TenantName::new(name).map_err(|_| damaged("name"))?,
        version: found.try_get::<_, i64>(1)?.unsigned_abs(),
        suspended_at: found.try_get::<_, Option<i64>>(2)?.map(row::instant),
        note: found.try_get(3)?,
        quotas: serde_json::from_str(text(4)?).map_err(|_| damaged("quotas"))?,
        settings: serde_json::from_str(text(5)?).map_err(|_| damaged("settings"))?,
        created_at: row::instant(found.try_get(6)?),
    })
}
