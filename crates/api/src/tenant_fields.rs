//! The body of a tenant's record.

use duly_client::wire::{QuotasView, TenantRequest, TenantSettingsView};
use duly_core::limits::{NOTE_CHARS, REDACT_PATHS};
use duly_core::tenant::{Quotas, TenantSettings, TenantSettingsDraft};
use duly_engine::command::tenants::TenantDraft;

use crate::back_off_fields;
use crate::error::ApiError;
use crate::fields::{self, Field, Fields};
use crate::order_fields::read_remark;
use crate::settings_fields::read_retention;

/// Reads a [`TenantRequest`].
pub(crate) fn draft(body: &[u8]) -> Result<TenantDraft, ApiError> {
    let (mut fields, object) = fields::open::<TenantRequest>(body)?;
    let note = read_remark(&mut fields, object.field("note"), NOTE_CHARS);
    let quotas = read_quotas(&mut fields, object.field("quotas"));
    let settings = read_settings(&mut fields, object.field("settings"));
    let note = (!note.is_empty()).then_some(note);
    fields.end(Some(TenantDraft { note, quotas, settings }))
}

fn read_quotas(fields: &mut Fields, field: Field<'_, '_>) -> Quotas {
    let Some(object) = fields.object::<QuotasView>(field) else { return Quotas::default() };
    let mut quota = |name| {
        let number = fields.whole(object.field(name), 0..=u32::MAX.into())?;
        u32::try_from(number).ok()
    };
    Quotas {
        waiting_tasks: quota("waitingTasks"),
        submits_per_second: quota("submitsPerSecond"),
        payload_bytes: quota("payloadBytes"),
        schedules: quota("schedules"),
        workflows: quota("workflows"),
    }
}

fn read_settings(fields: &mut Fields, field: Field<'_, '_>) -> TenantSettings {
    let Some(object) = fields.object::<TenantSettingsView>(field) else {
        return TenantSettings::default();
    };
    let retention = object.field("retention");
    let draft = TenantSettingsDraft {
        retries: fields.number(object.field("retries")),
        back_off: back_off_fields::read(fields, object.field("backoff"), "this object"),
        retention: retention.is_given().then(|| read_retention(fields, retention)),
        redact: read_redact(fields, object.field("redact")),
    };
    draft.check().unwrap_or_else(|found| {
        fields.absorb(field.at, found);
        TenantSettings::default()
    })
}

/// Reads the paths that are masked, if they are given.
pub(crate) fn read_redact(fields: &mut Fields, list: Field<'_, '_>) -> Option<Vec<String>> {
    list.is_given().then(|| {
        let items = fields.list(list, REDACT_PATHS);
        let each = items.iter().enumerate();
        each.filter_map(|(index, item)| fields.string(list.item(index, item))).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use duly_core::settings::{Kept, OwnRetention};

    use super::*;

    fn refused(body: &str) -> Vec<String> {
        let error = draft(body.as_bytes()).unwrap_err();
        let of =
            |error: &duly_core::submit::FieldError| format!("{} {}", error.pointer, error.code);
        error.errors().iter().map(of).collect()
    }

    #[test]
    fn each_period_is_as_in_the_installation_for_ever_or_given() {
        let read = |body: &str| draft(body.as_bytes()).unwrap().settings.retention;
        assert_eq!(read(r#"{"settings":{"retention":null}}"#), None);
        assert_eq!(read(r#"{"settings":{"retention":{}}}"#), None, "it differs in nothing");
        let body = r#"{"settings":{"retention":{"failedSeconds":1.5,"cancelledSeconds":null}}}"#;
        let expected = OwnRetention {
            success: None,
            failed: Some(Kept::For(Duration::from_millis(1_500))),
            cancelled: Some(Kept::Forever),
        };
        assert_eq!(read(body), Some(expected));
    }

    #[test]
    fn what_is_absent_or_null_holds_as_in_the_installation() {
        for body in ["{}", r#"{"quotas":{},"settings":{}}"#, r#"{"note":null,"quotas":null}"#] {
            assert_eq!(draft(body.as_bytes()).unwrap(), TenantDraft::default(), "{body}");
        }
        let body = r#"{"quotas":{"waitingTasks":0},"settings":{"retries":null,"redact":["/a"]}}"#;
        let read = draft(body.as_bytes()).unwrap();
        assert_eq!(read.quotas, Quotas { waiting_tasks: Some(0), ..Quotas::default() });
        assert_eq!(read.settings.redact, Some(vec!["/a".to_owned()]));
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let body = r#"{"suspendedAt":"x","quotas":{"workflows":-1,"x":1},
            "settings":{"retries":1001,"backoff":{"factor":0},"retention":{"failedSeconds":0},
            "redact":["a"],"notifications":{}}}"#;
        let expected = [
            "/suspendedAt UNKNOWN_FIELD",
            "/quotas/x UNKNOWN_FIELD",
            "/quotas/workflows OUT_OF_RANGE",
            "/settings/notifications UNKNOWN_FIELD",
            "/settings/retries OUT_OF_RANGE",
            "/settings/backoff/factor OUT_OF_RANGE",
            "/settings/retention/failedSeconds OUT_OF_RANGE",
            "/settings/redact/0 INVALID_PATH",
        ];
        assert_eq!(refused(body), expected);
    }
}
