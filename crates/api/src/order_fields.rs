//! The small bodies of orders, for one task or for dead letters. A body that is left out orders
//! the default.

use duly_core::filter::Filter;
use duly_core::limits::{NOTE_CHARS, REASON_CHARS};
use duly_core::submit::{FieldError, check_payload};
use duly_core::time::Timestamp;
use serde_json::value::RawValue;

use crate::error::ApiError;
use crate::fields::{self, Fields, Place};

/// The most tasks per second that a replay may ask for: more is all at once.
const PER_SECOND: std::ops::RangeInclusive<f64> = 0.001..=100_000.0;

/// `{reason?}`
pub(crate) fn reason(body: &[u8]) -> Result<String, ApiError> {
    remark(body, "reason", REASON_CHARS)
}

/// `{note?}`
pub(crate) fn note(body: &[u8]) -> Result<String, ApiError> {
    remark(body, "note", NOTE_CHARS)
}

/// A body of one short text for people.
fn remark(body: &[u8], name: &'static str, chars: usize) -> Result<String, ApiError> {
    let (mut fields, [text]) = read(body, [name])?;
    let text = read_remark(&mut fields, text, Place::Body.field(name), chars);
    fields.end(Some(text))
}

/// A short text for people; empty if it is left out.
pub(crate) fn read_remark(
    fields: &mut Fields,
    value: Option<&RawValue>,
    at: Place<'_>,
    chars: usize,
) -> String {
    let text = fields.string(value, at).unwrap_or_default();
    if text.chars().count() > chars || text.contains('\0') {
        let detail = format!("is at most {chars} characters, none of them U+0000");
        fields.refuse(at, "OUT_OF_RANGE", detail);
    }
    text
}

/// How many runs become due each second.
pub(crate) fn read_rate(
    fields: &mut Fields,
    value: Option<&RawValue>,
    at: Place<'_>,
) -> Option<f64> {
    let rate = fields.number(value, at)?;
    if !PER_SECOND.contains(&rate) {
        let detail = format!("must be from {} to {}", PER_SECOND.start(), PER_SECOND.end());
        fields.refuse(at, "OUT_OF_RANGE", detail);
    }
    Some(rate)
}

/// `{payload?}`
pub(crate) fn payload(body: &[u8]) -> Result<Option<&str>, ApiError> {
    let (fields, [payload]) = read(body, ["payload"])?;
    let payload = fields.end(Some(payload.map(RawValue::get)))?;
    payload.map(check_payload).transpose().map_err(|bad| ApiError::fields(vec![bad], 0))?;
    Ok(payload)
}

/// `{drain?}`
pub(crate) fn drain(body: &[u8]) -> Result<bool, ApiError> {
    let (mut fields, [drain]) = read(body, ["drain"])?;
    let drain = fields.flag(drain, Place::Body.field("drain")).unwrap_or(true);
    fields.end(Some(drain))
}

/// No field at all.
pub(crate) fn nothing(body: &[u8]) -> Result<(), ApiError> {
    let (fields, []) = read(body, [])?;
    fields.end(Some(()))
}

/// `{filter?, perSecond?}`
#[derive(Debug)]
pub(crate) struct ReplayDead {
    pub(crate) filter: String,
    pub(crate) per_second: Option<f64>,
}

impl ReplayDead {
    pub(crate) fn read(body: &[u8]) -> Result<Self, ApiError> {
        let (mut fields, [filter, per_second]) = read(body, ["filter", "perSecond"])?;
        let at = Place::Body;
        let filter = fields.string(filter, at.field("filter")).unwrap_or_default();
        let per_second = read_rate(&mut fields, per_second, at.field("perSecond"));
        fields.end(Some(Self { filter, per_second }))
    }
}

/// `{filter?, all?}`
#[derive(Debug)]
pub(crate) struct PurgeDead {
    pub(crate) filter: String,
    pub(crate) all: bool,
}

impl PurgeDead {
    pub(crate) fn read(body: &[u8]) -> Result<Self, ApiError> {
        let (mut fields, [filter, all]) = read(body, ["filter", "all"])?;
        let filter = fields.string(filter, Place::Body.field("filter")).unwrap_or_default();
        let all = fields.flag(all, Place::Body.field("all")).unwrap_or_default();
        fields.end(Some(Self { filter, all }))
    }

    /// Refuses to delete everything unless the order says so.
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

fn read<'a, const N: usize>(
    body: &'a [u8],
    names: [&'static str; N],
) -> Result<(Fields, [Option<&'a RawValue>; N]), ApiError> {
    let mut fields = Fields::default();
    if body.is_empty() {
        return Ok((fields, [None; N]));
    }
    match fields.object(fields::parse(body)?, Place::Body, names) {
        Some(values) => Ok((fields, values)),
        None => fields.end(None),
    }
}
