//! From the JSON of one task to a checked [`Spec`], with everything that is wrong said at once.
//!
//! The text is read twice and copied once: a first pass finds where each known field's value
//! lies, a second reads those values. No tree of values is built, and no value is looked into
//! deeper than its type, so that nesting costs nothing.

use std::collections::BTreeMap;

use duly_core::limits::LABELS;
use duly_core::submit::{Change, Draft, FieldError, Spec};
use serde_json::value::RawValue;

use crate::error::{ApiError, Code};
use crate::fields::{self, HALF_CHARACTER, shorten};

mod back_off;
mod slots;

use slots::{Field, Slots};

/// Reads one task from a whole body. `key` is the idempotency key of the header.
pub(crate) fn read(body: &[u8], key: Option<String>) -> Result<Spec, ApiError> {
    read_value(fields::parse(body)?, key)
}

/// Reads one task from text that is known to be JSON.
pub(crate) fn read_value(task: &RawValue, key: Option<String>) -> Result<Spec, ApiError> {
    if !task.get().starts_with('{') {
        let error = wrong_type(String::new(), "an object");
        return Err(ApiError::fields(vec![error], 0));
    }
    let (slots, mut draft) = read_draft(task)?;
    if let Some(key) = key {
        let conflict = draft.idempotency_key.as_ref().is_some_and(|field| *field != key);
        if conflict {
            return Err(conflicting_keys());
        }
        draft.idempotency_key = Some(key);
    }
    conclude(slots, draft.check())
}

/// Reads what is to change about a task from a whole body.
pub(crate) fn read_change(body: &[u8]) -> Result<Change, ApiError> {
    let change = fields::parse(body)?;
    if !change.get().starts_with('{') {
        let error = wrong_type(String::new(), "an object");
        return Err(ApiError::fields(vec![error], 0));
    }
    let (slots, draft) = read_draft(change)?;
    conclude(slots, draft.check_change())
}

fn read_draft(object: &RawValue) -> Result<(Slots<'_>, Draft), ApiError> {
    let mut slots = Slots::read(object).map_err(|bad| ApiError::malformed(&bad))?;
    let draft = draft(&mut slots);
    Ok((slots, draft))
}

/// What was checked, unless it or the reading of it found something wrong.
fn conclude<T>(slots: Slots<'_>, checked: Result<T, Vec<FieldError>>) -> Result<T, ApiError> {
    let mut errors = slots.errors;
    let unlisted = slots.unlisted;
    match checked {
        Ok(value) if errors.is_empty() => Ok(value),
        Ok(_) => Err(ApiError::fields(errors, unlisted)),
        Err(found) => {
            // A field that could not even be read counts as absent below; that is no news.
            let unread: Vec<_> = errors.iter().map(|error| error.pointer.clone()).collect();
            errors.extend(found.into_iter().filter(|error| !unread.contains(&error.pointer)));
            Err(ApiError::fields(errors, unlisted))
        }
    }
}

fn draft(slots: &mut Slots<'_>) -> Draft {
    if slots.take(Field::Notify).is_some() {
        slots.refuse(unsupported(Field::Notify));
    }
    dependencies(slots);
    Draft {
        task_type: string(slots, Field::Type),
        payload: slots.take(Field::Payload).map(|value| value.get().to_owned()),
        queue: string(slots, Field::Queue),
        priority: number(slots, Field::Priority),
        delay_seconds: number(slots, Field::DelaySeconds),
        run_at: string(slots, Field::RunAt),
        retries: number(slots, Field::Retries),
        back_off: back_off::read(slots),
        timeout_seconds: number(slots, Field::TimeoutSeconds),
        jitter_seconds: number(slots, Field::JitterSeconds),
        labels: labels(slots),
        idempotency_key: string(slots, Field::IdempotencyKey),
    }
}

fn string(slots: &mut Slots<'_>, field: Field) -> Option<String> {
    let value = slots.take(field)?;
    read_string(value, field.pointer()).map_err(|error| slots.refuse(error)).ok()
}

fn number(slots: &mut Slots<'_>, field: Field) -> Option<f64> {
    let value = slots.take(field)?;
    read_number(value, field.pointer()).map_err(|error| slots.refuse(error)).ok()
}

fn read_string(value: &RawValue, pointer: String) -> Result<String, FieldError> {
    fields::read_string(value).map_err(|(code, detail)| {
        let detail = detail.to_owned();
        FieldError { pointer, code, detail }
    })
}

fn read_number(value: &RawValue, pointer: String) -> Result<f64, FieldError> {
    fields::read_number(value).ok_or_else(|| wrong_type(pointer, "a number"))
}

fn labels(slots: &mut Slots<'_>) -> BTreeMap<String, String> {
    let Some(value) = slots.take(Field::Labels) else { return BTreeMap::new() };
    let pointer = Field::Labels.pointer();
    if !value.get().starts_with('{') {
        slots.refuse(wrong_type(pointer, "an object of strings"));
        return BTreeMap::new();
    }
    let Ok(pairs) = slots::pairs(value) else {
        slots.refuse(bad_unicode(pointer));
        return BTreeMap::new();
    };
    let mut labels = BTreeMap::new();
    for (key, value) in pairs {
        let place = || FieldError::of(&shorten(&key), "", "").pointer;
        if !value.get().starts_with('"') {
            slots.refuse(wrong_type(format!("{pointer}{}", place()), "a string"));
        } else if let Ok(text) = serde_json::from_str(value.get()) {
            let place = place();
            if labels.insert(key, text).is_some() {
                slots.refuse(FieldError {
                    pointer: format!("{pointer}{place}"),
                    code: "DUPLICATE_FIELD",
                    detail: "is given twice".to_owned(),
                });
            }
        } else {
            slots.refuse(bad_unicode(format!("{pointer}{}", place())));
        }
        if labels.len() > LABELS {
            break;
        }
    }
    labels
}

fn dependencies(slots: &mut Slots<'_>) {
    let Some(value) = slots.take(Field::Dependencies) else { return };
    let Some(inside) = value.get().strip_prefix('[') else {
        return slots.refuse(wrong_type(Field::Dependencies.pointer(), "an array"));
    };
    if inside.trim_ascii_start() != "]" {
        slots.refuse(unsupported(Field::Dependencies));
    }
}

fn wrong_type(pointer: String, wanted: &str) -> FieldError {
    FieldError { pointer, code: "WRONG_TYPE", detail: format!("must be {wanted}") }
}

fn bad_unicode(pointer: String) -> FieldError {
    FieldError { pointer, code: "INVALID_UNICODE", detail: HALF_CHARACTER.to_owned() }
}

fn unsupported(field: Field) -> FieldError {
    FieldError {
        pointer: field.pointer(),
        code: Code::UnsupportedField.as_str(),
        detail: "is not supported yet; leave it out".to_owned(),
    }
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
