//! What becomes of a tenant's record, as far as it does not depend on how it is stored. The reference
//! model has the same rules in its own words.

use duly_core::limits::TENANTS;
use duly_core::ports::store::{Expected, PutTenant, TenantChange};
use duly_core::tenant::TenantRecord;
use duly_core::time::Timestamp;

/// What to do about an order for a record.
pub(crate) enum Change {
    /// Nothing is written.
    Answer(TenantChange),
    /// It is new.
    Create(TenantRecord),
    /// It becomes this.
    Update(TenantRecord),
}

/// Creates or replaces; `count` is how many records there are.
pub(crate) fn put(
    before: Option<&TenantRecord>,
    put: &PutTenant,
    count: u32,
    now: Timestamp,
) -> Change {
    let Some(before) = before else {
        return match put.expected {
            Expected::Version(_) => Change::Answer(TenantChange::Conflict { version: None }),
            Expected::Any | Expected::Absent if count >= TENANTS => {
                Change::Answer(TenantChange::TooMany)
            }
            Expected::Any | Expected::Absent => Change::Create(record(None, put, now)),
        };
    };
    let is_met = match put.expected {
        Expected::Any => true,
        Expected::Absent => false,
        Expected::Version(wanted) => wanted == before.version,
    };
    // Perhaps this very order, whose answer was lost.
    let created = put.expected == Expected::Absent;
    if is_same(before, put) && (!created || before.version == 1) {
        let record = Box::new(before.clone());
        return Change::Answer(TenantChange::Done { record, created });
    }
    if !is_met {
        return Change::Answer(TenantChange::Conflict { version: Some(before.version) });
    }
    Change::Update(record(Some(before), put, now))
}

fn is_same(before: &TenantRecord, put: &PutTenant) -> bool {
    let TenantRecord { suspended_at, note, quotas, settings, .. } = before;
    suspended_at.is_some() == put.suspended
        && *note == put.note
        && *quotas == put.quotas
        && *settings == put.settings
}

fn record(before: Option<&TenantRecord>, put: &PutTenant, now: Timestamp) -> TenantRecord {
    let since = before.and_then(|before| before.suspended_at);
    TenantRecord {
        name: put.name.clone(),
        version: before.map_or(0, |before| before.version) + 1,
        suspended_at: put.suspended.then(|| since.unwrap_or(now)),
        note: put.note.clone(),
        quotas: put.quotas,
        settings: put.settings.clone(),
        created_at: before.map_or(now, |before| before.created_at),
    }
}
