//! Walks over objects and arrays of JSON text without copying what is in them.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{names, shorten};

/// The name of a field: its index among the known ones, or the name itself.
pub(super) enum Name {
    Known(usize),
    Unknown(String),
}

/// Calls `each` for every field of an object. An error means that a name is not Unicode.
pub(super) fn object<'a>(
    object: &'a RawValue,
    names: &[&str],
    each: impl FnMut(Name, &'a RawValue),
) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_str(object.get());
    json.deserialize_map(ObjectVisitor { names, each })
}

/// The first pairs of an object, in order. An error means that a name is not Unicode.
pub(super) fn pairs(
    object: &RawValue,
    most: usize,
) -> serde_json::Result<Vec<(String, &RawValue)>> {
    let mut json = serde_json::Deserializer::from_str(object.get());
    json.deserialize_map(PairsVisitor { most })
}

/// The first items of an array, and how many it has.
pub(super) fn array(array: &RawValue, most: usize) -> (Vec<&RawValue>, usize) {
    let mut json = serde_json::Deserializer::from_str(array.get());
    json.deserialize_seq(ArrayVisitor { most }).expect("what was read as JSON is JSON")
}

struct ObjectVisitor<'n, F> {
    names: &'n [&'n str],
    each: F,
}

impl<'de, F: FnMut(Name, &'de RawValue)> Visitor<'de> for ObjectVisitor<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut next = 0;
        while let Some(name) = map.next_key_seed(NameSeed { names: self.names, next })? {
            if let Name::Known(index) = name {
                next = index + 1;
            }
            (self.each)(name, map.next_value()?);
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct NameSeed<'n> {
    names: &'n [&'n str],
    /// Where the name probably stands.
    next: usize,
}

impl<'de> DeserializeSeed<'de> for NameSeed<'_> {
    type Value = Name;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Name, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed<'_> {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Name, E> {
        let known = names::position(self.names, self.next, name);
        Ok(known.map_or_else(|| Name::Unknown(shorten(name)), Name::Known))
    }
}

struct PairsVisitor {
    most: usize,
}

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while pairs.len() < self.most {
            match map.next_entry()? {
                Some(pair) => pairs.push(pair),
                None => return Ok(pairs),
            }
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(pairs)
    }
}

/// Keeps the items within the limit and counts them all, so that the rest is still read as JSON.
pub(crate) struct ArrayVisitor {
    pub(crate) most: usize,
}

impl<'de> Visitor<'de> for ArrayVisitor {
    type Value = (Vec<&'de RawValue>, usize);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while items.len() < self.most {
            match seq.next_element()? {
                Some(item) => items.push(item),
                None => {
                    let count = items.len();
                    return Ok((items, count));
                }
            }
        }
        let mut count = items.len();
        while seq.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok((items, count))
    }
}
