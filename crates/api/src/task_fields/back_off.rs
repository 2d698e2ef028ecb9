//! The object `backoff` of a submit.

use duly_core::submit::{BackOffDraft, FieldError};
use serde_json::value::RawValue;

use super::slots::{self, Field, Slots};
use super::{bad_unicode, read_number, read_string, wrong_type};

/// Reads the object, if there is one, and notes everything that is wrong with it.
pub(super) fn read(slots: &mut Slots<'_>) -> Option<BackOffDraft> {
    let value = slots.take(Field::Backoff)?;
    let pointer = Field::Backoff.pointer();
    if !value.get().starts_with('{') {
        slots.refuse(wrong_type(pointer, "an object"));
        return None;
    }
    let Ok(pairs) = slots::pairs(value) else {
        slots.refuse(bad_unicode(pointer));
        return None;
    };
    let mut draft = BackOffDraft::default();
    let mut seen = Vec::new();
    for (name, value) in pairs {
        let pointer =
            format!("{pointer}{}", FieldError::of(&slots::shorten(&name), "", "").pointer);
        if seen.contains(&name) {
            let detail = "is given twice".to_owned();
            slots.refuse(FieldError { pointer, code: "DUPLICATE_FIELD", detail });
        } else if value.get() != "null"
            && let Err(error) = put(&mut draft, &name, value, pointer)
        {
            slots.refuse(error);
        }
        seen.push(name);
        if slots.unlisted > 0 {
            break;
        }
    }
    Some(draft)
}

fn put(
    draft: &mut BackOffDraft,
    name: &str,
    value: &RawValue,
    pointer: String,
) -> Result<(), FieldError> {
    match name {
        "strategy" => draft.strategy = Some(read_string(value, pointer)?),
        "baseSeconds" => draft.base_seconds = Some(read_number(value, pointer)?),
        "factor" => draft.factor = Some(read_number(value, pointer)?),
        "capSeconds" => draft.cap_seconds = Some(read_number(value, pointer)?),
        "jitter" => draft.jitter = Some(read_string(value, pointer)?),
        _ => {
            let detail = "is no field of backoff; check its spelling".to_owned();
            return Err(FieldError { pointer, code: "UNKNOWN_FIELD", detail });
        }
    }
    Ok(())
}
