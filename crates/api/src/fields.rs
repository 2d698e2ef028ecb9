//! Reads request bodies into what the wire types describe, and reports everything that is wrong at
//! once.
//!
//! No tree of values is built: each object is walked once to find its fields in the text, and each
//! field is read from there. The wire type of an object says which fields it has.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use duly_client::wire::lease;
use duly_core::limits::COUNT;
use duly_core::submit::FieldError;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::ApiError;

mod names;
mod object;
mod open;
mod walk;

use object::Values;
pub(crate) use object::{Field, Object, Pointer};
pub(crate) use open::{expect_no_fields, open, open_optional, parse};
pub(crate) use walk::ArrayVisitor;

/// How many errors of one body are listed; the rest is counted.
pub(crate) const ERRORS: usize = 20;
/// The largest whole number that every JSON parser reads as it is written: 2^53 - 1.
pub(crate) const EXACT: u64 = COUNT;

/// Reads one body and notes what is wrong with it. A field that is wrong reads as nothing, and
/// [`Fields::end`] refuses the body.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    errors: Vec<FieldError>,
    unlisted: usize,
}

impl Fields {
    /// What was read, unless something was wrong.
    pub(crate) fn end<T>(self, read: Option<T>) -> Result<T, ApiError> {
        match read {
            Some(read) if self.errors.is_empty() => Ok(read),
            _ => Err(ApiError::fields(self.errors, self.unlisted)),
        }
    }

    /// What was checked, unless reading it or the check found something wrong.
    pub(crate) fn conclude<T>(
        mut self,
        checked: Result<T, Vec<FieldError>>,
    ) -> Result<T, ApiError> {
        let found = match checked {
            Ok(checked) => return self.end(Some(checked)),
            Err(found) => found,
        };
        // To the check, a field that could not be read is absent: that error is listed already.
        let unread: Vec<_> = self.errors.iter().map(|error| error.pointer.clone()).collect();
        self.errors.extend(found.into_iter().filter(|error| !unread.contains(&error.pointer)));
        self.end(None)
    }

    /// How much was wrong so far.
    pub(crate) fn count(&self) -> usize {
        self.errors.len() + self.unlisted
    }

    /// Whether nothing was wrong so far.
    pub(crate) fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    /// Notes an error.
    pub(crate) fn refuse(
        &mut self,
        at: Pointer<'_>,
        code: &'static str,
        detail: impl Into<String>,
    ) {
        if self.errors.len() < ERRORS {
            let error = FieldError { pointer: at.to_string(), code, detail: detail.into() };
            self.errors.push(error);
        } else {
            self.unlisted += 1;
        }
    }

    /// Notes what a check found wrong with the object at this place.
    pub(crate) fn absorb(&mut self, at: Pointer<'_>, found: Vec<FieldError>) {
        let base = at.to_string();
        for error in found {
            let pointer = format!("{base}{}", error.pointer);
            // To the check, a field that could not be read is absent: that error is listed already.
            if self.errors.iter().any(|known| known.pointer == pointer) {
                continue;
            }
            if self.errors.len() < ERRORS {
                self.errors.push(FieldError { pointer, ..error });
            } else {
                self.unlisted += 1;
            }
        }
    }

    /// The fields of an object of the wire type `W`; nothing if it is absent or not an object.
    pub(crate) fn object<'a, 'p, W: DeserializeOwned>(
        &mut self,
        field: Field<'a, 'p>,
    ) -> Option<Object<'a, 'p>> {
        self.lenient_object(field, names::of::<W>(), "this object")
    }

    /// The same; `name` names the object to a caller that sends an unknown field.
    pub(crate) fn named_object<'a, 'p, W: DeserializeOwned>(
        &mut self,
        field: Field<'a, 'p>,
        name: &str,
    ) -> Option<Object<'a, 'p>> {
        self.lenient_object(field, names::of::<W>(), name)
    }

    /// The same; a name that is not Unicode is malformed JSON, and not an error of the object.
    pub(crate) fn strict_object<'a, 'p, W: DeserializeOwned>(
        &mut self,
        field: Field<'a, 'p>,
        name: &str,
    ) -> Result<Option<Object<'a, 'p>>, ApiError> {
        let Some(value) = self.braced(field, "an object") else { return Ok(None) };
        let names = names::of::<W>();
        let (values, walked) = self.find(value, field.at, names, name);
        walked.map_err(|bad| ApiError::malformed(&bad))?;
        Ok(Some(Object::new(field.at, names, values)))
    }

    fn lenient_object<'a, 'p>(
        &mut self,
        field: Field<'a, 'p>,
        names: &'static [&'static str],
        of: &str,
    ) -> Option<Object<'a, 'p>> {
        let value = self.braced(field, "an object")?;
        let (values, walked) = self.find(value, field.at, names, of);
        if walked.is_err() {
            self.refuse(field.at, "INVALID_UNICODE", HALF_CHARACTER);
        }
        Some(Object::new(field.at, names, values))
    }

    /// Finds the values of an object's fields. An error means that a name is not Unicode; the
    /// fields before it are found.
    fn find<'a>(
        &mut self,
        value: &'a RawValue,
        at: Pointer<'_>,
        names: &'static [&'static str],
        of: &str,
    ) -> (Values<'a>, serde_json::Result<()>) {
        let mut values = Values::default();
        let walked = walk::object(value, names, |name, value| match name {
            walk::Name::Known(index) if values[index].is_some() => {
                self.refuse(at.field(names[index]), "DUPLICATE_FIELD", "is given twice");
            }
            walk::Name::Known(index) => values[index] = Some(value),
            walk::Name::Unknown(name) => {
                let detail = format!("is no field of {of}; check its spelling");
                self.refuse(at.field(&name), "UNKNOWN_FIELD", detail);
            }
        });
        (values, walked)
    }

    /// A value that begins like an object; `wanted` says what it must be.
    fn braced<'a>(&mut self, field: Field<'a, '_>, wanted: &str) -> Option<&'a RawValue> {
        let value = field.value?;
        if value.get().starts_with('{') {
            return Some(value);
        }
        self.refuse(field.at, "WRONG_TYPE", format!("must be {wanted}"));
        None
    }

    /// The first pairs of an object whose names are free; none if it is absent. `wanted` says what
    /// it must be.
    pub(crate) fn pairs<'a>(
        &mut self,
        field: Field<'a, '_>,
        most: usize,
        wanted: &str,
    ) -> Vec<(String, &'a RawValue)> {
        let Some(value) = self.braced(field, wanted) else { return Vec::new() };
        walk::pairs(value, most).unwrap_or_else(|_| {
            self.refuse(field.at, "INVALID_UNICODE", HALF_CHARACTER);
            Vec::new()
        })
    }

    /// The items of an array of at most so many; none if it is absent.
    pub(crate) fn list<'a>(&mut self, field: Field<'a, '_>, most: usize) -> Vec<&'a RawValue> {
        let Some(value) = field.value else { return Vec::new() };
        if !value.get().starts_with('[') {
            self.refuse(field.at, "WRONG_TYPE", "must be an array");
            return Vec::new();
        }
        let (items, count) = walk::array(value, most);
        if count > most {
            self.refuse(field.at, "TOO_MANY", format!("has {count} items and may have {most}"));
        }
        items
    }

    /// The items of an array that must be there and must not be empty.
    pub(crate) fn filled_list<'a>(
        &mut self,
        field: Field<'a, '_>,
        most: usize,
    ) -> Vec<&'a RawValue> {
        let Some(value) = self.required(field).value else { return Vec::new() };
        let is_list = value.get().starts_with('[');
        let items = self.list(field, most);
        if is_list && items.is_empty() {
            self.refuse(field.at, "REQUIRED", "must not be empty");
        }
        items
    }

    /// A field that must be there.
    pub(crate) fn required<'a, 'p>(&mut self, field: Field<'a, 'p>) -> Field<'a, 'p> {
        if !field.is_given() {
            self.refuse(field.at, "REQUIRED", "is required");
        }
        field
    }

    pub(crate) fn string(&mut self, field: Field<'_, '_>) -> Option<String> {
        let value = field.value?;
        if !value.get().starts_with('"') {
            self.refuse(field.at, "WRONG_TYPE", "must be a string");
            return None;
        }
        let text = serde_json::from_str(value.get());
        text.map_err(|_| self.refuse(field.at, "INVALID_UNICODE", HALF_CHARACTER)).ok()
    }

    pub(crate) fn flag(&mut self, field: Field<'_, '_>) -> Option<bool> {
        let flag = field.value?.get().parse().ok();
        if flag.is_none() {
            self.refuse(field.at, "WRONG_TYPE", "must be true or false");
        }
        flag
    }

    /// An id of a task or a session.
    pub(crate) fn id<T: FromStr>(&mut self, field: Field<'_, '_>) -> Option<T> {
        // Read in place where there are no escapes, as in every UUID that a program writes.
        let text = field.value?.get();
        let plain = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        if let Some(id) = plain.and_then(|text| text.parse().ok()) {
            return Some(id);
        }
        let id = self.string(field)?.parse().ok();
        if id.is_none() {
            self.refuse(field.at, "INVALID_ID", "must be a UUID as the server gave it");
        }
        id
    }

    /// A number. What is too large for a float becomes infinite, which no field allows.
    pub(crate) fn number(&mut self, field: Field<'_, '_>) -> Option<f64> {
        let text = field.value?.get();
        if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            self.refuse(field.at, "WRONG_TYPE", "must be a number");
            return None;
        }
        Some(text.parse().expect("a JSON number is a Rust number"))
    }

    /// A whole number, exact to the last digit.
    pub(crate) fn whole(
        &mut self,
        field: Field<'_, '_>,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let number = self.number(field)?;
        let exact = field.value?.get().parse().ok().or_else(|| whole(number));
        let found = exact.filter(|number| range.contains(number));
        if found.is_none() {
            let (least, most) = range.into_inner();
            let detail = format!("must be a whole number from {least} to {most}");
            self.refuse(field.at, "OUT_OF_RANGE", detail);
        }
        found
    }

    /// A time of zero or more, to the millisecond.
    pub(crate) fn seconds(&mut self, field: Field<'_, '_>, most: Duration) -> Option<Duration> {
        let number = self.number(field)?;
        let found = lease::duration(number).filter(|duration| *duration <= most);
        if found.is_none() {
            let detail = format!("must be a number of seconds from 0 to {}", most.as_secs());
            self.refuse(field.at, "OUT_OF_RANGE", detail);
        }
        found
    }
}

const HALF_CHARACTER: &str = "holds half of a surrogate pair, which is no character";

/// A name that a caller sent, short enough to be sent back.
pub(crate) fn shorten(name: &str) -> String {
    const CHARS: usize = 64;
    match name.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// What `3.0` and `1e3` stand for.
fn whole(number: f64) -> Option<u64> {
    #[expect(clippy::cast_precision_loss, reason = "2^53 - 1 is exact")]
    let range = 0.0..=EXACT as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked here")]
    (number.fract() == 0.0 && range.contains(&number)).then_some(number as u64)
}

#[cfg(test)]
mod tests;
