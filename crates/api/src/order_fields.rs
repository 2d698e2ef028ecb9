//! The small bodies that control tasks, queues and workers. A body that is left out asks for the
//! default.

use duly_client::wire::{
    CancelRequest, DrainRequest, PauseRequest, PurgeDeadRequest, ReplayDeadRequest, ReplayRequest,
};
use duly_core::filter::Filter;
use duly_core::limits::{NOTE_CHARS, REASON_CHARS};
use duly_core::submit::{FieldError, check_payload};
use duly_core::time::Timestamp;
use serde_json::value::RawValue;

use crate::error::ApiError;
use crate::fields::{self, Field, Fields};

/// The rates, in tasks per second, that a replay may ask for.
const PER_SECOND: std::ops::RangeInclusive<f64> = 0.001..=100_000.0;

/// The reason of a [`CancelRequest`].
pub(crate) fn reason(body: &[u8]) -> Result<String, ApiError> {
    let (mut fields, object) = fields::open_optional::<CancelRequest>(body)?;
    let text = read_remark(&mut fields, object.field("reason"), REASON_CHARS);
    fields.end(Some(text))
}

/// The note of a [`PauseRequest`].
pub(crate) fn note(body: &[u8]) -> Result<String, ApiError> {
    let (mut fields, object) = fields::open_optional::<PauseRequest>(body)?;
    let text = read_remark(&mut fields, object.field("note"), NOTE_CHARS);
    fields.end(Some(text))
}

/// A short text for people; empty if it is left out.
pub(crate) fn read_remark(fields: &mut Fields, field: Field<'_, '_>, chars: usize) -> String {
    let text = fields.string(field).unwrap_or_default();
    if text.chars().count() > chars || text.contains('\0') {
        let detail = format!("is at most {chars} characters, none of them U+0000");
        fields.refuse(field.at, "OUT_OF_RANGE", detail);
    }
    text
}

/// How many runs become due each second.
pub(crate) fn read_rate(fields: &mut Fields, field: Field<'_, '_>) -> Option<f64> {
    let rate = fields.number(field)?;
    if !PER_SECOND.contains(&rate) {
        let detail = format!("must be from {} to {}", PER_SECOND.start(), PER_SECOND.end());
        fields.refuse(field.at, "OUT_OF_RANGE", detail);
    }
    Some(rate)
}

/// The payload of a [`ReplayRequest`], and whether it is for all that depends on the task.
pub(crate) fn replay(body: &[u8]) -> Result<(Option<&str>, bool), ApiError> {
    let (mut fields, object) = fields::open_optional::<ReplayRequest>(body)?;
    let downstream = object.field("downstream");
    let is_downstream = fields.flag(downstream).unwrap_or_default();
    let payload = object.field("payload").value.map(RawValue::get);
    if is_downstream && payload.is_some() {
        fields.refuse(downstream.at, "CONFLICTING_FIELDS", "goes only without payload");
    }
    let payload = fields.end(Some(payload))?;
    payload.map(check_payload).transpose().map_err(|bad| ApiError::fields(vec![bad], 0))?;
    Ok((payload, is_downstream))
}

/// Whether a [`DrainRequest`] starts or ends the drain.
pub(crate) fn drain(body: &[u8]) -> Result<bool, ApiError> {
    let (mut fields, object) = fields::open_optional::<DrainRequest>(body)?;
    let drain = fields.flag(object.field("drain")).unwrap_or(true);
    fields.end(Some(drain))
}

/// A [`ReplayDeadRequest`] that was read.
#[derive(Debug)]
pub(crate) struct ReplayDead {
    pub(crate) filter: String,
    pub(crate) per_second: Option<f64>,
}

impl ReplayDead {
    pub(crate) fn read(body: &[u8]) -> Result<Self, ApiError> {
        let (mut fields, object) = fields::open_optional::<ReplayDeadRequest>(body)?;
        let filter = fields.string(object.field("filter")).unwrap_or_default();
        let per_second = read_rate(&mut fields, object.field("perSecond"));
        fields.end(Some(Self { filter, per_second }))
    }
}

/// A [`PurgeDeadRequest`] that was read.
#[derive(Debug)]
pub(crate) struct PurgeDead {
    pub(crate) filter: String,
    pub(crate) all: bool,
}

impl PurgeDead {
    pub(crate) fn read(body: &[u8]) -> Result<Self, ApiError> {
        let (mut fields, object) = fields::open_optional::<PurgeDeadRequest>(body)?;
        let filter = fields.string(object.field("filter")).unwrap_or_default();
        let all = fields.flag(object.field("all")).unwrap_or_default();
        fields.end(Some(Self { filter, all }))
    }

    /// Refuses to delete everything unless the request says so.
    pub(crate) fn check(&self, filter: &Filter) -> Result<(), ApiError> {
        if self.all || *filter != Filter::default() {
            return Ok(());
        }
        let detail = "must be true to delete every dead letter; or give a filter";
        Err(ApiError::fields(vec![FieldError::of("all", "REQUIRED", detail)], 0))
    }
}

/// The filter of a body.
pub(crate) fn filter(text: &str, now: Timestamp) -> Result<Filter, ApiError> {
    Filter::parse_dead(text, now).map_err(|bad| {
        ApiError::fields(vec![FieldError::of("filter", "INVALID_FILTER", bad.to_string())], 0)
    })
}
