//! What becomes of a tenant's record, as far as it does not depend on how it is stored. The reference
//! model has the same rules in its own words.

use duly_core::limits::TENANTS;
use duly_core::ports::store::{Expected, PutTenant, TenantChange};
use duly_core::settings::OwnRetention;
use duly_core::tenant::{TenantRecord, TenantSettings};
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

/// The retention of a tenant whose record has these settings, if it has one of its own. Settings that
/// cannot be read may have had any, so that nothing is deleted.
pub(crate) fn retention_in(settings: &str) -> Option<OwnRetention> {
    match serde_json::from_str::<TenantSettings>(settings) {
        Ok(settings) => settings.retention,
        Err(_) => Some(OwnRetention::FOREVER),
    }
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

#[cfg(test)]
mod tests {
    use duly_core::limits::DEFAULT_RETENTION;
    use duly_core::settings::Kept;

    use super::*;

    #[test]
    fn a_retention_that_cannot_be_read_never_ends() {
        let none = serde_json::to_string(&TenantSettings::default()).unwrap();
        assert_eq!(retention_in(&none), None);
        assert!(none.contains(r#""retention":null"#), "queries look for this text");
        let week =
            OwnRetention { success: Some(Kept::For(DEFAULT_RETENTION)), ..OwnRetention::default() };
        let own = TenantSettings { retention: Some(week), ..TenantSettings::default() };
        let own = serde_json::to_string(&own).unwrap();
        assert_eq!(retention_in(&own), Some(week));
        assert_eq!(retention_in(&own[1..]), Some(OwnRetention::FOREVER));
        let path = r#"/"retention":null"#.to_owned();
        let quoted = TenantSettings { redact: Some(vec![path]), ..TenantSettings::default() };
        let quoted = serde_json::to_string(&quoted).unwrap();
        assert_eq!(
            quoted.matches(r#""retention":null"#).count(),
            1,
            "no string holds it: {quoted}"
        );
    }
}
