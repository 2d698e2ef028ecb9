//! The small bodies of orders for one task. A body that is left out orders the default.

use duly_core::limits::REASON_CHARS;
use duly_core::submit::{FieldError, check_payload};
use serde_json::value::RawValue;

use crate::error::ApiError;
use crate::task_fields;

/// `{reason?}`
pub(crate) fn reason(body: &[u8]) -> Result<String, ApiError> {
    let Some(value) = only(body, Some("reason"))? else { return Ok(String::new()) };
    let reason = task_fields::read_string(value, "/reason".to_owned()).map_err(one)?;
    if reason.chars().count() > REASON_CHARS || reason.contains('\0') {
        let detail = format!("is at most {REASON_CHARS} characters, none of them U+0000");
        return Err(one(FieldError::of("reason", "OUT_OF_RANGE", detail)));
    }
    Ok(reason)
}

/// `{payload?}`
pub(crate) fn payload(body: &[u8]) -> Result<Option<&str>, ApiError> {
    let Some(value) = only(body, Some("payload"))? else { return Ok(None) };
    let text = value.get();
    check_payload(text).map_err(one)?;
    Ok(Some(text))
}

/// No field at all.
pub(crate) fn nothing(body: &[u8]) -> Result<(), ApiError> {
    only(body, None).map(|_| ())
}

/// The value of the only field that is allowed; `null` counts as absent.
fn only<'a>(body: &'a [u8], name: Option<&str>) -> Result<Option<&'a RawValue>, ApiError> {
    if body.is_empty() {
        return Ok(None);
    }
    let object: &RawValue =
        serde_json::from_slice(body).map_err(|bad| ApiError::malformed(&bad))?;
    let mut found = None;
    for (field, value) in task_fields::object(object)? {
        if Some(field.as_str()) != name {
            let detail = "is no field of this order; check its spelling";
            return Err(one(FieldError::of(
                &task_fields::shorten(&field),
                "UNKNOWN_FIELD",
                detail,
            )));
        }
        if found.replace(value).is_some() {
            return Err(one(FieldError::of(&field, "DUPLICATE_FIELD", "is given twice")));
        }
    }
    Ok(found.filter(|value| value.get() != "null"))
}

fn one(error: FieldError) -> ApiError {
    ApiError::fields(vec![error], 0)
}
