//! The body of a submit and of a change to a task: from JSON text to a checked [`Spec`] or
//! [`Change`].
//!
//! The payload is kept as it is spelled. No value is looked into deeper than its type, so nesting
//! costs nothing here.

use std::collections::BTreeMap;

use duly_client::wire::SubmitRequest;
use duly_core::limits::LABELS;
use duly_core::submit::{Change, Draft, FieldError, Spec};
use serde_json::value::RawValue;

use crate::back_off_fields;
use crate::error::{ApiError, Code};
use crate::fields::{self, ERRORS, Field, Fields, Object, shorten};

/// How many labels are looked at: more than a task may have, and enough to list what is wrong.
const PAIRS: usize = LABELS + ERRORS + 1;

/// Reads one task from a whole body. `key` is the idempotency key of the header.
pub(crate) fn read(body: &[u8], key: Option<String>) -> Result<Spec, ApiError> {
    read_value(fields::parse(body)?, key)
}

/// Reads one task from text that is known to be JSON.
pub(crate) fn read_value(task: &RawValue, key: Option<String>) -> Result<Spec, ApiError> {
    let (fields, mut draft) = read_draft(task)?;
    if let Some(key) = key {
        if draft.idempotency_key.as_ref().is_some_and(|field| *field != key) {
            return Err(conflicting_keys());
        }
        draft.idempotency_key = Some(key);
    }
    fields.conclude(draft.check())
}

/// Reads the changes to a task from a whole body.
pub(crate) fn read_change(body: &[u8]) -> Result<Change, ApiError> {
    let (fields, draft) = read_draft(fields::parse(body)?)?;
    fields.conclude(draft.check_change())
}

/// A change is read like a task: a field that a task has and that cannot change is not unknown.
fn read_draft(task: &RawValue) -> Result<(Fields, Draft), ApiError> {
    let mut fields = Fields::default();
    match fields.strict_object::<SubmitRequest>(Field::body(task), "a task")? {
        Some(object) => {
            let draft = draft(&mut fields, &object);
            Ok((fields, draft))
        }
        None => fields.end(None),
    }
}

fn draft(fields: &mut Fields, object: &Object<'_, '_>) -> Draft {
    let notify = object.field("notify");
    if notify.is_given() {
        refuse_unsupported(fields, notify);
    }
    read_dependencies(fields, object.field("dependencies"));
    Draft {
        task_type: fields.string(object.field("type")),
        payload: object.field("payload").value.map(|value| value.get().to_owned()),
        queue: fields.string(object.field("queue")),
        priority: fields.number(object.field("priority")),
        delay_seconds: fields.number(object.field("delaySeconds")),
        run_at: fields.string(object.field("runAt")),
        retries: fields.number(object.field("retries")),
        back_off: back_off_fields::read(fields, object.field("backoff"), "backoff"),
        timeout_seconds: fields.number(object.field("timeoutSeconds")),
        jitter_seconds: fields.number(object.field("jitterSeconds")),
        labels: read_labels(fields, object.field("labels")),
        idempotency_key: fields.string(object.field("idempotencyKey")),
    }
}

fn read_labels(fields: &mut Fields, field: Field<'_, '_>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for (key, value) in fields.pairs(field, PAIRS, "an object of strings") {
        let name = shorten(&key);
        let at = field.at.field(&name);
        let Some(text) = fields.string(Field { value: Some(value), at }) else { continue };
        if labels.insert(key, text).is_some() {
            fields.refuse(at, "DUPLICATE_FIELD", "is given twice");
        }
        if labels.len() > LABELS {
            break;
        }
    }
    labels
}

/// Only the empty list is supported.
fn read_dependencies(fields: &mut Fields, field: Field<'_, '_>) {
    let Some(value) = field.value else { return };
    let Some(inside) = value.get().strip_prefix('[') else {
        return fields.refuse(field.at, "WRONG_TYPE", "must be an array");
    };
    if inside.trim_ascii_start() != "]" {
        refuse_unsupported(fields, field);
    }
}

fn refuse_unsupported(fields: &mut Fields, field: Field<'_, '_>) {
    let code = Code::UnsupportedField.as_str();
    fields.refuse(field.at, code, "is not supported yet; leave it out");
}

fn conflicting_keys() -> ApiError {
    let detail = "differs from the header Idempotency-Key; give one of them";
    let error = FieldError::of("idempotencyKey", Code::ConflictingFields.as_str(), detail);
    ApiError::with_errors(
        Code::ConflictingFields,
        format!("/idempotencyKey: {detail}"),
        vec![error],
    )
}

#[cfg(test)]
mod tests;
