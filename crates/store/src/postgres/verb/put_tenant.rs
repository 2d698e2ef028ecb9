//! Put a tenant: create or replace its record, suspend it and let it go on.

use duly_core::ports::store::{PutTenant, TenantChange};
use duly_core::tenant::TenantRecord;
use duly_core::time::Timestamp;

use super::{Scope, Verb};
use crate::audited::{Audited, Subject};
use crate::postgres::error::Result;
use crate::postgres::tenants::{decode, select};
use crate::tenant_rules::{self as rules, Change};

impl Verb for PutTenant {
    type Answer = TenantChange;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<TenantChange> {
        // One change at a time; readers do not wait.
        let lock = "/* tenant.lock */ LOCK TABLE duly.tenant IN SHARE ROW EXCLUSIVE MODE";
        scope.execute(lock, &[]).await?;
        let found = scope.query(&select("hold", "name = $1"), &[&self.name.as_str()]).await?;
        let before = found.first().map(decode).transpose()?;
        let count = "/* tenant.count */ SELECT count(*) FROM duly.tenant";
        let count: i64 = match scope.query(count, &[]).await?.first() {
            Some(row) => row.try_get(0)?,
            None => 0,
        };
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let (record, created) = match rules::put(before.as_ref(), self, count, scope.now) {
            Change::Answer(answer) => return Ok(answer),
            Change::Create(record) => (record, true),
            Change::Update(record) => (record, false),
        };
        store(scope, &record).await?;
        let was_suspended = before.is_some_and(|before| before.suspended_at.is_some());
        match (was_suspended, record.suspended_at) {
            (false, Some(since)) => hold_back(scope, &record, since).await?,
            (true, None) => go_on(scope, &record).await?,
            _ => {}
        }
        Ok(TenantChange::Done { record: Box::new(record), created })
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

async fn store(scope: &Scope<'_>, record: &TenantRecord) -> Result<()> {
    let json = "quotas and settings are JSON";
    let quotas = serde_json::to_string(&record.quotas).expect(json);
    let settings = serde_json::to_string(&record.settings).expect(json);
    let upsert = "/* tenant.put */ INSERT INTO duly.tenant
            (name, version, suspended_at, note, quotas, settings, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (name) DO UPDATE SET version = excluded.version,
            suspended_at = excluded.suspended_at, note = excluded.note,
            quotas = excluded.quotas, settings = excluded.settings";
    scope
        .execute(
            upsert,
            &[
                &record.name.as_str(),
                &record.version.cast_signed(),
                &record.suspended_at.map(Timestamp::millis),
                &record.note,
                &quotas,
                &settings,
                &record.created_at.millis(),
            ],
        )
        .await?;
    Ok(())
}

/// An empty queue stands for all of the tenant's.
async fn hold_back(scope: &Scope<'_>, record: &TenantRecord, since: Timestamp) -> Result<()> {
    let insert = "/* tenant.suspend */ INSERT INTO duly.pause (tenant, queue, since, note)
        VALUES ($1, '', $2, '') ON CONFLICT DO NOTHING";
    scope.execute(insert, &[&record.name.as_str(), &since.millis()]).await?;
    Ok(())
}

async fn go_on(scope: &mut Scope<'_>, record: &TenantRecord) -> Result<()> {
    let delete = "/* tenant.resume */ DELETE FROM duly.pause WHERE tenant = $1 AND queue = ''";
    scope.execute(delete, &[&record.name.as_str()]).await?;
    // Something may have waited all along.
    scope.wakes.anywhere(scope.now);
    Ok(())
}
