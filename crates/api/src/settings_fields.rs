//! The bodies of changes to the settings.

use duly_core::limits::COMMENT_CHARS;
use duly_core::settings::{RetentionDraft, SettingsChange, SettingsDraft};
use duly_core::submit::BackOffDraft;
use serde_json::value::RawValue;

use crate::error::ApiError;
use crate::fields::{self, EXACT, Fields, Place};
use crate::order_fields::read_remark;

/// `{retries?, backoff?, workerConcurrency?, lossLimit?, retention?, comment?}`
pub(crate) fn change(body: &[u8]) -> Result<SettingsChange, ApiError> {
    let body = fields::parse(body)?;
    let (mut fields, at) = (Fields::default(), Place::Body);
    let names = ["retries", "backoff", "workerConcurrency", "lossLimit", "retention", "comment"];
    let Some([retries, back_off, concurrency, loss_limit, retention, comment]) =
        fields.object(body, at, names)
    else {
        return fields.end(None);
    };
    let draft = SettingsDraft {
        retries: fields.number(retries, at.field("retries")),
        back_off: back_off.map(|value| read_back_off(&mut fields, value, at.field("backoff"))),
        worker_concurrency: fields.number(concurrency, at.field("workerConcurrency")),
        loss_limit: fields.number(loss_limit, at.field("lossLimit")),
        retention: read_retention(&mut fields, retention, at.field("retention")),
        comment: fields.string(comment, at.field("comment")),
    };
    fields.conclude(draft.check())
}

fn read_back_off(fields: &mut Fields, value: &RawValue, at: Place<'_>) -> BackOffDraft {
    let names = ["strategy", "baseSeconds", "factor", "capSeconds", "jitter"];
    let Some([strategy, base, factor, cap, jitter]) = fields.object(value, at, names) else {
        return BackOffDraft::default();
    };
    BackOffDraft {
        strategy: fields.string(strategy, at.field("strategy")),
        base_seconds: fields.number(base, at.field("baseSeconds")),
        factor: fields.number(factor, at.field("factor")),
        cap_seconds: fields.number(cap, at.field("capSeconds")),
        jitter: fields.string(jitter, at.field("jitter")),
    }
}

/// Here `null` says something: for ever.
fn read_retention(fields: &mut Fields, value: Option<&RawValue>, at: Place<'_>) -> RetentionDraft {
    let Some(value) = value else { return RetentionDraft::default() };
    let names = ["successSeconds", "failedSeconds", "cancelledSeconds"];
    let Some([success, failed, cancelled]) = fields.object_with_nulls(value, at, names) else {
        return RetentionDraft::default();
    };
    let mut period = |value: Option<&RawValue>, name| match value?.get() {
        "null" => Some(None),
        // One that cannot be read counts as absent; the body is refused anyway.
        _ => fields.number(value, at.field(name)).map(Some),
    };
    RetentionDraft {
        success_seconds: period(success, "successSeconds"),
        failed_seconds: period(failed, "failedSeconds"),
        cancelled_seconds: period(cancelled, "cancelledSeconds"),
    }
}

/// `{version, comment?}`
pub(crate) fn rollback(body: &[u8]) -> Result<(u64, Option<String>), ApiError> {
    let body = fields::parse(body)?;
    let (mut fields, at) = (Fields::default(), Place::Body);
    let Some([version, comment]) = fields.object(body, at, ["version", "comment"]) else {
        return fields.end(None);
    };
    let version = fields.required(version, at.field("version"));
    let version = fields.whole(version, at.field("version"), 0..=EXACT);
    let comment = comment
        .map(|comment| read_remark(&mut fields, Some(comment), at.field("comment"), COMMENT_CHARS));
    fields.end(version.map(|version| (version, comment)))
}
