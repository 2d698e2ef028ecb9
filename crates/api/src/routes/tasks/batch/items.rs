//! The items of a batch, as text.

use duly_core::limits::BATCH_ITEMS;
use duly_core::submit::{FieldError, Spec};
use serde::Deserializer;
use serde_json::value::RawValue;

use crate::error::{ApiError, Code};
use crate::fields::ArrayVisitor;
use crate::task_fields;

/// The items of a batch; at most [`BATCH_ITEMS`].
pub(super) enum Items<'a> {
    /// Of an array, each known to be JSON.
    Values(Vec<&'a RawValue>),
    /// Lines that may be anything.
    Lines(Vec<&'a [u8]>),
}

impl<'a> Items<'a> {
    /// The items of a JSON array.
    pub(super) fn of_array(body: &'a [u8]) -> Result<Self, ApiError> {
        let malformed = |bad: serde_json::Error| ApiError::malformed(&bad);
        if body.trim_ascii_start().first() != Some(&b'[') {
            let _: &RawValue = serde_json::from_slice(body).map_err(malformed)?;
            let detail = "must be an array of tasks".to_owned();
            let error = FieldError { pointer: String::new(), code: "WRONG_TYPE", detail };
            let detail = "the body must be an array of tasks";
            return Err(ApiError::with_errors(Code::InvalidFields, detail, vec![error]));
        }
        let mut json = serde_json::Deserializer::from_slice(body);
        let visitor = ArrayVisitor { most: BATCH_ITEMS };
        let (items, count) = json.deserialize_seq(visitor).map_err(malformed)?;
        json.end().map_err(malformed)?;
        bounded(count)?;
        Ok(Self::Values(items))
    }

    /// The lines of NDJSON; empty ones are skipped.
    pub(super) fn of_lines(body: &'a [u8]) -> Result<Self, ApiError> {
        let lines = body.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let mut lines = lines.filter(|line| !line.is_empty());
        let items: Vec<_> = lines.by_ref().take(BATCH_ITEMS).collect();
        bounded(items.len() + lines.count())?;
        Ok(Self::Lines(items))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Values(items) => items.len(),
            Self::Lines(items) => items.len(),
        }
    }

    /// Reads the item at this place.
    pub(super) fn read(&self, at: usize) -> Result<Spec, ApiError> {
        match self {
            Self::Values(items) => task_fields::read_value(items[at], None),
            Self::Lines(items) => task_fields::read(items[at], None),
        }
    }
}

fn bounded(count: usize) -> Result<(), ApiError> {
    if count <= BATCH_ITEMS {
        return Ok(());
    }
    let detail =
        format!("the batch has {count} items and may have {BATCH_ITEMS}; send it in parts");
    Err(ApiError::new(Code::TooManyItems, detail))
}
