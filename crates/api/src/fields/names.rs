//! The names of the fields of a wire type, as serde knows them. The wire types are the only place
//! that lists the fields of a request.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::forward_to_deserialize_any;

/// The names of the fields of a wire type, in the order in which it declares them.
pub(super) fn of<'de, W: Deserialize<'de>>() -> &'static [&'static str] {
    match W::deserialize(NameReader) {
        Err(Names(names)) => names,
        Ok(_) => &[],
    }
}

/// Where a name stands among these. It is looked for from `start` on first: fields are mostly sent and read
/// in the order in which their type declares them.
pub(super) fn position(names: &[&str], start: usize, name: &str) -> Option<usize> {
    let (before, after) = names.split_at(start.min(names.len()));
    let find = |part: &[&str]| part.iter().position(|known| *known == name);
    find(after).map(|index| start + index).or_else(|| find(before))
}

/// Deserialises nothing: it fails with the names that the type asks for.
struct NameReader;

#[derive(Debug)]
struct Names(&'static [&'static str]);

impl<'de> Deserializer<'de> for NameReader {
    type Error = Names;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Names> {
        Err(Names(names))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Names> {
        Err(Names(&[]))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        option unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier
        ignored_any
    }
}

impl de::Error for Names {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }
}

impl std::error::Error for Names {}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the type has the fields {:?}", self.0)
    }
}
