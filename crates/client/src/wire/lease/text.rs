//! JSON text inside JSON, byte for byte. Read and written straight from and into the `Arc<str>`
//! that the rest of the system passes on, since claims and outcomes are the hot path.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Text that is damaged is written as a JSON string, so that one bad row does not break the
/// batch it is in.
pub(super) fn serialize<S: Serializer>(text: &Arc<str>, out: S) -> Result<S::Ok, S::Error> {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => raw.serialize(out),
        Err(_) => out.serialize_str(text),
    }
}

/// Borrows from the input, so that the only copy is the one that stays.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Arc<str>, D::Error> {
    Ok(<&RawValue>::deserialize(input)?.get().into())
}

/// The same for text that may be absent.
pub(super) mod optional {
    use super::{Arc, Deserialize, Deserializer, RawValue, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        text: &Option<Arc<str>>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        match text {
            Some(text) => super::serialize(text, out),
            None => out.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        input: D,
    ) -> Result<Option<Arc<str>>, D::Error> {
        Ok(Option::<&RawValue>::deserialize(input)?.map(|raw| raw.get().into()))
    }
}
