//! Where the value of each known field of a task lies in its JSON text.

use std::fmt;

use duly_core::limits::LABELS;
use duly_core::submit::FieldError;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::fields::{ERRORS, shorten};

macro_rules! fields {
    ($($field:ident $name:literal,)*) => {
        /// The fields of a submit.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Field {
            $($field,)*
        }

        const FIELDS: usize = [$($name,)*].len();

        impl Field {
            fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$field),)*
                    _ => None,
                }
            }

            /// JSON pointer to the field.
            pub(super) fn pointer(self) -> String {
                match self {
                    $(Self::$field => concat!("/", $name).to_owned(),)*
                }
            }
        }
    };
}

fields! {
    Type "type",
    Payload "payload",
    Queue "queue",
    Priority "priority",
    DelaySeconds "delaySeconds",
    RunAt "runAt",
    Retries "retries",
    Backoff "backoff",
    TimeoutSeconds "timeoutSeconds",
    JitterSeconds "jitterSeconds",
    Dependencies "dependencies",
    Notify "notify",
    Labels "labels",
    IdempotencyKey "idempotencyKey",
}

/// The values found, and what was wrong with the names.
#[derive(Default)]
pub(super) struct Slots<'a> {
    values: [Option<&'a RawValue>; FIELDS],
    pub(super) errors: Vec<FieldError>,
    /// Errors beyond those that are listed.
    pub(super) unlisted: usize,
}

impl<'a> Slots<'a> {
    /// Finds the fields of an object. An error is one of a name that is no Unicode.
    pub(super) fn read(object: &'a RawValue) -> serde_json::Result<Self> {
        let mut json = serde_json::Deserializer::from_str(object.get());
        json.deserialize_map(SlotsVisitor)
    }

    /// The value of a field; `null` counts as absent.
    pub(super) fn take(&mut self, field: Field) -> Option<&'a RawValue> {
        self.values[field as usize].take().filter(|value| value.get() != "null")
    }

    /// Notes an error.
    pub(super) fn refuse(&mut self, error: FieldError) {
        if self.errors.len() < ERRORS {
            self.errors.push(error);
        } else {
            self.unlisted += 1;
        }
    }

    fn put(&mut self, name: Name, value: &'a RawValue) {
        match name {
            Name::Known(field) if self.values[field as usize].is_none() => {
                self.values[field as usize] = Some(value);
            }
            Name::Known(field) => {
                let detail = "is given twice".to_owned();
                let pointer = field.pointer();
                self.refuse(FieldError { pointer, code: "DUPLICATE_FIELD", detail });
            }
            Name::Unknown(name) => {
                let detail = "is no field of a task; check its spelling";
                self.refuse(FieldError::of(&name, "UNKNOWN_FIELD", detail));
            }
        }
    }
}

/// How many pairs of an object are looked at: more than any may have, and enough to say so.
const PAIRS: usize = LABELS + ERRORS + 1;

/// The first pairs of an object, in order. An error is one of a name that is no Unicode.
pub(super) fn pairs(object: &RawValue) -> serde_json::Result<Vec<(String, &RawValue)>> {
    let mut json = serde_json::Deserializer::from_str(object.get());
    json.deserialize_map(PairsVisitor)
}

enum Name {
    Known(Field),
    Unknown(String),
}

struct NameSeed;

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = Name;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Name, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Name, E> {
        Ok(Field::named(name).map_or_else(|| Name::Unknown(shorten(name)), Name::Known))
    }
}

struct SlotsVisitor;

impl<'de> Visitor<'de> for SlotsVisitor {
    type Value = Slots<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Slots<'de>, A::Error> {
        let mut slots = Slots::default();
        while let Some(name) = map.next_key_seed(NameSeed)? {
            slots.put(name, map.next_value()?);
        }
        Ok(slots)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while pairs.len() < PAIRS {
            match map.next_entry()? {
                Some(pair) => pairs.push(pair),
                None => return Ok(pairs),
            }
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(pairs)
    }
}
