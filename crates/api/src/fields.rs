//! The fields of request bodies: known names once each, values of the right type and range, and
//! everything that is wrong said at once.
//!
//! A body is never turned into a tree of values: each object is walked once to find where its
//! fields lie, and each field is read from there straight into what it stands for.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use duly_client::wire::lease;
use duly_core::limits::COUNT;
use duly_core::submit::FieldError;
use serde_json::value::RawValue;

use crate::error::ApiError;

mod walk;

pub(crate) use walk::ArrayVisitor;

/// How many errors of one body are listed; the rest is counted.
pub(crate) const ERRORS: usize = 20;
/// The largest whole number that every JSON parser reads as it is written: 2^53 - 1.
pub(crate) const EXACT: u64 = COUNT;

/// Where a value stands in a body. Written as a JSON pointer, and only if something is wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'p> {
    Body,
    Field(&'p Place<'p>, &'p str),
    Item(&'p Place<'p>, usize),
}

impl<'p> Place<'p> {
    pub(crate) fn field(&'p self, name: &'p str) -> Self {
        Self::Field(self, name)
    }

    pub(crate) fn item(&'p self, at: usize) -> Self {
        Self::Item(self, at)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body => Ok(()),
            Self::Field(parent, name) => {
                write!(f, "{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
            }
            Self::Item(parent, at) => write!(f, "{parent}/{at}"),
        }
    }
}

/// The text of a body as one JSON value.
pub(crate) fn parse(body: &[u8]) -> Result<&RawValue, ApiError> {
    serde_json::from_slice(body).map_err(|bad| ApiError::malformed(&bad))
}

/// Reads one body and notes what is wrong with it. A field that is `null` counts as absent; one
/// that is wrong reads as nothing, and [`Fields::end`] refuses the body.
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

    /// Notes an error.
    pub(crate) fn refuse(&mut self, at: Place<'_>, code: &'static str, detail: impl Into<String>) {
        if self.errors.len() < ERRORS {
            let error = FieldError { pointer: at.to_string(), code, detail: detail.into() };
            self.errors.push(error);
        } else {
            self.unlisted += 1;
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
        // A field that could not even be read counts as absent for the check; that is no news.
        let unread: Vec<_> = self.errors.iter().map(|error| error.pointer.clone()).collect();
        let news = found.into_iter().filter(|error| !unread.contains(&error.pointer));
        self.errors.extend(news);
        self.end(None)
    }

    /// The values of an object's fields, in the order of `names`; nothing if it is no object.
    pub(crate) fn object<'a, const N: usize>(
        &mut self,
        value: &'a RawValue,
        at: Place<'_>,
        names: [&'static str; N],
    ) -> Option<[Option<&'a RawValue>; N]> {
        let values = self.object_with_nulls(value, at, names)?;
        Some(values.map(unless_null))
    }

    /// The same for an object in which `null` and nothing differ.
    pub(crate) fn object_with_nulls<'a, const N: usize>(
        &mut self,
        value: &'a RawValue,
        at: Place<'_>,
        names: [&'static str; N],
    ) -> Option<[Option<&'a RawValue>; N]> {
        if !value.get().starts_with('{') {
            self.refuse(at, "WRONG_TYPE", "must be an object");
            return None;
        }
        let mut values = [None; N];
        let mut seen = [false; N];
        let walked = walk::object(value, &names, |name, value| match name {
            walk::Name::Known(place) if std::mem::replace(&mut seen[place], true) => {
                self.refuse(at.field(names[place]), "DUPLICATE_FIELD", "is given twice");
            }
            walk::Name::Known(place) => {
                values[place] = Some(value);
            }
            walk::Name::Unknown(name) => {
                let detail = "is no field of this object; check its spelling";
                self.refuse(at.field(&name), "UNKNOWN_FIELD", detail);
            }
        });
        if walked.is_err() {
            self.refuse(at, "INVALID_UNICODE", HALF_CHARACTER);
        }
        Some(values)
    }

    /// The items of an array of at most so many; none if it is absent.
    pub(crate) fn list<'a>(
        &mut self,
        value: Option<&'a RawValue>,
        at: Place<'_>,
        most: usize,
    ) -> Vec<&'a RawValue> {
        let Some(value) = value else { return Vec::new() };
        if !value.get().starts_with('[') {
            self.refuse(at, "WRONG_TYPE", "must be an array");
            return Vec::new();
        }
        let (items, count) = walk::array(value, most);
        if count > most {
            self.refuse(at, "TOO_MANY", format!("has {count} items and may have {most}"));
        }
        items
    }

    /// The items of an array that must be there and must not be empty.
    pub(crate) fn filled_list<'a>(
        &mut self,
        value: Option<&'a RawValue>,
        at: Place<'_>,
        most: usize,
    ) -> Vec<&'a RawValue> {
        let Some(value) = self.required(value, at) else { return Vec::new() };
        let is_list = value.get().starts_with('[');
        let items = self.list(Some(value), at, most);
        if is_list && items.is_empty() {
            self.refuse(at, "REQUIRED", "must not be empty");
        }
        items
    }

    /// A value that must be there.
    pub(crate) fn required<'a>(
        &mut self,
        value: Option<&'a RawValue>,
        at: Place<'_>,
    ) -> Option<&'a RawValue> {
        if value.is_none() {
            self.refuse(at, "REQUIRED", "is required");
        }
        value
    }

    pub(crate) fn string(&mut self, value: Option<&RawValue>, at: Place<'_>) -> Option<String> {
        let read = read_string(value?);
        read.map_err(|(code, detail)| self.refuse(at, code, detail)).ok()
    }

    pub(crate) fn flag(&mut self, value: Option<&RawValue>, at: Place<'_>) -> Option<bool> {
        let flag = value?.get().parse().ok();
        if flag.is_none() {
            self.refuse(at, "WRONG_TYPE", "must be true or false");
        }
        flag
    }

    /// An id of a task or a session.
    pub(crate) fn id<T: FromStr>(&mut self, value: Option<&RawValue>, at: Place<'_>) -> Option<T> {
        let value = value?;
        // Read in place: nobody writes a UUID with escapes, and those who do get it read below.
        let plain = value.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        if let Some(id) = plain.and_then(|text| text.parse().ok()) {
            return Some(id);
        }
        let id = self.string(Some(value), at)?.parse().ok();
        if id.is_none() {
            self.refuse(at, "INVALID_ID", "must be a UUID as the server gave it");
        }
        id
    }

    pub(crate) fn number(&mut self, value: Option<&RawValue>, at: Place<'_>) -> Option<f64> {
        let number = read_number(value?);
        if number.is_none() {
            self.refuse(at, "WRONG_TYPE", "must be a number");
        }
        number
    }

    /// A whole number, exact to the last digit.
    pub(crate) fn whole(
        &mut self,
        value: Option<&RawValue>,
        at: Place<'_>,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let value = value?;
        let number = self.number(Some(value), at)?;
        let exact = value.get().parse().ok().or_else(|| whole(number));
        let found = exact.filter(|number| range.contains(number));
        if found.is_none() {
            let (least, most) = range.into_inner();
            let detail = format!("must be a whole number from {least} to {most}");
            self.refuse(at, "OUT_OF_RANGE", detail);
        }
        found
    }

    /// A time of zero or more, to the millisecond.
    pub(crate) fn seconds(
        &mut self,
        value: Option<&RawValue>,
        at: Place<'_>,
        most: Duration,
    ) -> Option<Duration> {
        let number = self.number(value, at)?;
        let found = lease::duration(number).filter(|duration| *duration <= most);
        if found.is_none() {
            let detail = format!("must be a number of seconds from 0 to {}", most.as_secs());
            self.refuse(at, "OUT_OF_RANGE", detail);
        }
        found
    }
}

pub(crate) const HALF_CHARACTER: &str = "holds half of a surrogate pair, which is no character";

/// The text of a string, or code and words for what is wrong with it.
pub(crate) fn read_string(value: &RawValue) -> Result<String, (&'static str, &'static str)> {
    if !value.get().starts_with('"') {
        return Err(("WRONG_TYPE", "must be a string"));
    }
    serde_json::from_str(value.get()).map_err(|_| ("INVALID_UNICODE", HALF_CHARACTER))
}

/// The number of a value that is one. What is too large for a float becomes infinite, which no
/// field allows.
pub(crate) fn read_number(value: &RawValue) -> Option<f64> {
    let text = value.get();
    let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    is_number.then(|| text.parse().expect("a JSON number is a Rust number"))
}

/// A value in whose place `null` means that it is absent.
pub(crate) fn unless_null(value: Option<&RawValue>) -> Option<&RawValue> {
    value.filter(|value| value.get() != "null")
}

/// A name that came from outside, short enough to be sent back.
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
