//! Put a tenant: create or replace its record, suspend it and let it go on.

use duly_core::ports::store::{PutTenant, TenantChange};
use duly_core::tenant::TenantRecord;
use duly_core::time::Timestamp;
use rusqlite::params;

use super::{Scope, Verb};
use crate::audited::{Audited, Subject};
use crate::sqlite::error::Result;
use crate::sqlite::tenants::find;
use crate::tenant_rules::{self as rules, Change};

impl Verb for PutTenant {
    type Answer = TenantChange;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<TenantChange> {
        let before = find(scope.connection, &self.name)?;
        let count = "/* tenant.count */ SELECT count(*) FROM tenant";
        let count = scope.connection.query_row(count, [], |row| row.get(0))?;
        let (record, created) = match rules::put(before.as_ref(), self, count, scope.now) {
            Change::Answer(answer) => return Ok(answer),
            Change::Create(record) => (record, true),
            Change::Update(record) => (record, false),
        };
        store(scope, &record)?;
        let was_suspended = before.is_some_and(|before| before.suspended_at.is_some());
        match (was_suspended, record.suspended_at) {
            (false, Some(since)) => hold_back(scope, &record, since)?,
            (true, None) => go_on(scope, &record)?,
            _ => {}
        }
        Ok(TenantChange::Done { record: Box::new(record), created })
    }

    fn audited(&self) -> Vec<Subject> {
        Audited::audited(self)
    }
}

fn store(scope: &Scope<'_>, record: &TenantRecord) -> Result<()> {
    let json = "quotas and settings are JSON";
    scope
        .connection
        .prepare_cached(
            "/* tenant.put */ INSERT INTO tenant
                (name, version, suspended_at, note, quotas, settings, created_at)
             VALUES (?, ?, ?, ?, ?, ?, ?)
             ON CONFLICT (name) DO UPDATE SET version = excluded.version,
                suspended_at = excluded.suspended_at, note = excluded.note,
                quotas = excluded.quotas, settings = excluded.settings",
        )?
        .execute(params![
            record.name.as_str(),
            record.version,
            record.suspended_at.map(Timestamp::millis),
            record.note,
            serde_json::to_string(&record.quotas).expect(json),
            serde_json::to_string(&record.settings).expect(json),
            record.created_at.millis(),
        ])?;
    Ok(())
}

/// An empty queue stands for all of the tenant's.
fn hold_back(scope: &mut Scope<'_>, record: &TenantRecord, since: Timestamp) -> Result<()> {
    scope.connection.execute(
        "/* tenant.suspend */ INSERT INTO pause (tenant, queue, since, note) VALUES (?, '', ?, '')
         ON CONFLICT DO NOTHING",
        params![record.name.as_str(), since.millis()],
    )?;
    scope.index.suspend(&record.name);
    Ok(())
}

fn go_on(scope: &mut Scope<'_>, record: &TenantRecord) -> Result<()> {
    scope.connection.execute(
        "/* tenant.resume */ DELETE FROM pause WHERE tenant = ? AND queue = ''",
        [record.name.as_str()],
    )?;
    if let Some(due) = scope.index.unsuspend(&record.name) {
        scope.hint_at(Timestamp::clamped(due));
    }
    Ok(())
}
