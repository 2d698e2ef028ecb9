//! The object `backoff` of a submit.

use duly_core::submit::{BackOffDraft, FieldError};
use serde_json::value::RawValue;

use super::slots::{self, Field, Slots};
use super::{bad_unicode, read_number, read_string, shorten, wrong_type};

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
    let mut seen = [false; FIELDS.len()];
    for (name, value) in pairs {
        let pointer = || format!("{pointer}{}", FieldError::of(&shorten(&name), "", "").pointer);
        let refused = match FIELDS.iter().position(|field| *field == name) {
            None => {
                let detail = "is no field of backoff; check its spelling".to_owned();
                Some(FieldError { pointer: pointer(), code: "UNKNOWN_FIELD", detail })
            }
            Some(place) if std::mem::replace(&mut seen[place], true) => {
                let detail = "is given twice".to_owned();
                Some(FieldError { pointer: pointer(), code: "DUPLICATE_FIELD", detail })
            }
            Some(_) if value.get() == "null" => None,
            Some(_) => put(&mut draft, &name, value, pointer()).err(),
        };
        refused.into_iter().for_each(|error| slots.refuse(error));
    }
    Some(draft)
}

const FIELDS: [&str; 5] = ["strategy", "baseSeconds", "factor", "capSeconds", "jitter"];

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
        _ => draft.jitter = Some(read_string(value, pointer)?),
    }
    Ok(())
}
