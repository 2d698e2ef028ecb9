//! The bodies of reports: how far attempts are, and what they log.

use std::sync::Arc;

use duly_core::limits::{CHECKPOINT_BYTES, COUNT, MESSAGE_CHARS, STORE_BATCH};
use duly_core::log::{self, LogChunk};
use duly_core::ports::store::{Report, ReportItem};
use duly_core::progress::Progress;
use serde_json::value::RawValue;

use super::outcome::{checked_json, plain};
use super::{required_epoch, required_id};
use crate::error::ApiError;
use crate::fields::{self, Fields, Place};

/// `{sessionId, items: [{taskId, epoch, done, total?, message?, checkpoint?}]}`
pub(crate) fn progress(body: &[u8]) -> Result<Report, ApiError> {
    read(body, |fields, value, at| {
        let names = ["taskId", "epoch", "done", "total", "message", "checkpoint"];
        let [task, epoch, done, total, message, checkpoint] = fields.object(value, at, names)?;
        let task = required_id(fields, task, at.field("taskId"));
        let epoch = required_epoch(fields, epoch, at.field("epoch"));
        let progress = steps(fields, at, [done, total, message, checkpoint]);
        Some(ReportItem { task: task?, epoch: epoch?, progress: Some(progress?), log: None })
    })
}

/// `{sessionId, items: [{taskId, epoch, offset, text}]}`
pub(crate) fn logs(body: &[u8]) -> Result<Report, ApiError> {
    read(body, |fields, value, at| {
        let names = ["taskId", "epoch", "offset", "text"];
        let [task, epoch, offset, text] = fields.object(value, at, names)?;
        let task = required_id(fields, task, at.field("taskId"));
        let epoch = required_epoch(fields, epoch, at.field("epoch"));
        let offset = fields.required(offset, at.field("offset"));
        let offset = fields.whole(offset, at.field("offset"), 0..=COUNT);
        let text = fields.required(text, at.field("text"));
        let text = fields.string(text, at.field("text")).map(|text| log::plain(&text).into());
        let log = Some(LogChunk { offset: offset?, text: text? });
        Some(ReportItem { task: task?, epoch: epoch?, progress: None, log })
    })
}

fn read(
    body: &[u8],
    item: impl Fn(&mut Fields, &RawValue, Place<'_>) -> Option<ReportItem>,
) -> Result<Report, ApiError> {
    let body = fields::parse(body)?;
    let (mut fields, at) = (Fields::default(), Place::Body);
    let Some([session, items]) = fields.object(body, at, ["sessionId", "items"]) else {
        return fields.end(None);
    };
    let session = required_id(&mut fields, session, at.field("sessionId"));
    let here = at.field("items");
    let values = fields.filled_list(items, here, STORE_BATCH);
    let mut items = Vec::with_capacity(values.len());
    for (place, value) in values.into_iter().enumerate() {
        items.extend(item(&mut fields, value, here.item(place)));
    }
    fields.end(session.map(|session| Report { session, items }))
}

/// `{done, total?, message?, checkpoint?}`
pub(super) fn last_progress(
    fields: &mut Fields,
    value: &RawValue,
    at: Place<'_>,
) -> Option<Progress> {
    let values = fields.object(value, at, ["done", "total", "message", "checkpoint"])?;
    steps(fields, at, values)
}

fn steps(
    fields: &mut Fields,
    at: Place<'_>,
    [done, total, message, checkpoint]: [Option<&RawValue>; 4],
) -> Option<Progress> {
    let done = fields.required(done, at.field("done"));
    let done = fields.whole(done, at.field("done"), 0..=COUNT);
    let total = fields.whole(total, at.field("total"), 0..=COUNT);
    let here = at.field("message");
    let message = fields.string(message, here).map(plain);
    if message.as_ref().is_some_and(|text| text.chars().count() > MESSAGE_CHARS) {
        fields.refuse(here, "OUT_OF_RANGE", format!("may have {MESSAGE_CHARS} characters"));
    }
    let here = at.field("checkpoint");
    let checkpoint: Option<Arc<str>> = checkpoint
        .and_then(|note| checked_json(fields, note, here, (CHECKPOINT_BYTES, "OUT_OF_RANGE")));
    Some(Progress { done: done?, total, message, checkpoint })
}
