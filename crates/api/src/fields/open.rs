//! Opens request bodies: from bytes to the fields of an object.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::object::Values;
use super::{Field, Fields, Object, Pointer, names};
use crate::error::ApiError;

/// The text of a body as one JSON value.
pub(crate) fn parse(body: &[u8]) -> Result<&RawValue, ApiError> {
    serde_json::from_slice(body).map_err(|bad| ApiError::malformed(&bad))
}

/// A reader, and the fields of a body of the wire type `W`.
pub(crate) fn open<W: DeserializeOwned>(
    body: &[u8],
) -> Result<(Fields, Object<'_, 'static>), ApiError> {
    open_names(body, names::of::<W>())
}

/// The same for a body that may be left out: all its fields are then absent.
pub(crate) fn open_optional<W: DeserializeOwned>(
    body: &[u8],
) -> Result<(Fields, Object<'_, 'static>), ApiError> {
    if !body.is_empty() {
        return open::<W>(body);
    }
    let object = Object::new(Pointer::Root, names::of::<W>(), Values::default());
    Ok((Fields::default(), object))
}

/// Refuses a body that has a field; it may be left out.
pub(crate) fn expect_no_fields(body: &[u8]) -> Result<(), ApiError> {
    if body.is_empty() {
        return Ok(());
    }
    let (fields, _) = open_names(body, &[])?;
    fields.end(Some(()))
}

fn open_names<'a>(
    body: &'a [u8],
    names: &'static [&'static str],
) -> Result<(Fields, Object<'a, 'static>), ApiError> {
    let mut fields = Fields::default();
    match fields.lenient_object(Field::body(parse(body)?), names, "this object") {
        Some(object) => Ok((fields, object)),
        None => fields.end(None),
    }
}
