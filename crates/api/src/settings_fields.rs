//! The bodies of changes to the settings.

use duly_client::wire::{RetentionView, RollbackRequest, SettingsRequest};
use duly_core::limits::COMMENT_CHARS;
use duly_core::settings::{RetentionDraft, SettingsChange, SettingsDraft};

use crate::back_off_fields;
use crate::error::ApiError;
use crate::fields::{self, EXACT, Field, Fields};
use crate::order_fields::read_remark;
use crate::tenant_fields::read_redact;

/// Reads a [`SettingsRequest`].
pub(crate) fn change(body: &[u8]) -> Result<SettingsChange, ApiError> {
    let (mut fields, object) = fields::open::<SettingsRequest>(body)?;
    let draft = SettingsDraft {
        retries: fields.number(object.field("retries")),
        back_off: back_off_fields::read(&mut fields, object.field("backoff"), "this object"),
        worker_concurrency: fields.number(object.field("workerConcurrency")),
        loss_limit: fields.number(object.field("lossLimit")),
        retention: read_retention(&mut fields, object.field("retention")),
        redact: read_redact(&mut fields, object.field("redact")),
        comment: fields.string(object.field("comment")),
    };
    fields.conclude(draft.check())
}

/// Here `null` differs from absent: it means for ever.
pub(crate) fn read_retention(fields: &mut Fields, field: Field<'_, '_>) -> RetentionDraft {
    let Some(object) = fields.object::<RetentionView>(field) else {
        return RetentionDraft::default();
    };
    let mut period = |name| {
        let field = object.field_or_null(name);
        match field.value?.get() {
            "null" => Some(None),
            // One that cannot be read counts as absent; the body is refused anyway.
            _ => fields.number(field).map(Some),
        }
    };
    RetentionDraft {
        success_seconds: period("successSeconds"),
        failed_seconds: period("failedSeconds"),
        cancelled_seconds: period("cancelledSeconds"),
    }
}

/// Reads a [`RollbackRequest`]: the version, and a comment.
pub(crate) fn rollback(body: &[u8]) -> Result<(u64, Option<String>), ApiError> {
    let (mut fields, object) = fields::open::<RollbackRequest>(body)?;
    let version = fields.required(object.field("version"));
    let version = fields.whole(version, 0..=EXACT);
    let comment = object.field("comment");
    let comment = comment.is_given().then(|| read_remark(&mut fields, comment, COMMENT_CHARS));
    fields.end(version.map(|version| (version, comment)))
}
