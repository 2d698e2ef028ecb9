//! The bodies of reports: the progress of attempts, and what they log.

use duly_client::wire::{LogItem, LogsRequest, ProgressItem, ProgressRequest};
use duly_core::limits::{CHECKPOINT_BYTES, COUNT, MESSAGE_CHARS, STORE_BATCH};
use duly_core::log::{self, LogChunk};
use duly_core::ports::store::{Report, ReportItem};
use duly_core::progress::Progress;
use serde::de::DeserializeOwned;

use super::outcome::{checked_json, plain};
use super::{required_epoch, required_id};
use crate::error::ApiError;
use crate::fields::{self, Field, Fields, Object};

/// Reads a [`ProgressRequest`].
pub(crate) fn progress(body: &[u8]) -> Result<Report, ApiError> {
    read::<ProgressRequest>(body, |fields, item| {
        let object = fields.object::<ProgressItem>(item)?;
        let task = required_id(fields, object.field("taskId"));
        let epoch = required_epoch(fields, object.field("epoch"));
        let progress = progress_of(fields, &object);
        Some(ReportItem { task: task?, epoch: epoch?, progress: Some(progress?), log: None })
    })
}

/// Reads a [`LogsRequest`].
pub(crate) fn logs(body: &[u8]) -> Result<Report, ApiError> {
    read::<LogsRequest>(body, |fields, item| {
        let object = fields.object::<LogItem>(item)?;
        let task = required_id(fields, object.field("taskId"));
        let epoch = required_epoch(fields, object.field("epoch"));
        let offset = fields.required(object.field("offset"));
        let offset = fields.whole(offset, 0..=COUNT);
        let text = fields.required(object.field("text"));
        let text = fields.string(text).map(|text| log::plain(&text).into());
        let log = Some(LogChunk { offset: offset?, text: text? });
        Some(ReportItem { task: task?, epoch: epoch?, progress: None, log })
    })
}

fn read<W: DeserializeOwned>(
    body: &[u8],
    read_item: impl Fn(&mut Fields, Field<'_, '_>) -> Option<ReportItem>,
) -> Result<Report, ApiError> {
    let (mut fields, object) = fields::open::<W>(body)?;
    let session = required_id(&mut fields, object.field("sessionId"));
    let list = object.field("items");
    let values = fields.filled_list(list, STORE_BATCH);
    let mut items = Vec::with_capacity(values.len());
    for (index, value) in values.into_iter().enumerate() {
        items.extend(read_item(&mut fields, list.item(index, value)));
    }
    fields.end(session.map(|session| Report { session, items }))
}

/// The progress in an item of a report, or in an outcome.
pub(super) fn progress_of(fields: &mut Fields, object: &Object<'_, '_>) -> Option<Progress> {
    let done = fields.required(object.field("done"));
    let done = fields.whole(done, 0..=COUNT);
    let total = fields.whole(object.field("total"), 0..=COUNT);
    let field = object.field("message");
    let message = fields.string(field).map(plain);
    if message.as_ref().is_some_and(|text| text.chars().count() > MESSAGE_CHARS) {
        fields.refuse(field.at, "OUT_OF_RANGE", format!("may have {MESSAGE_CHARS} characters"));
    }
    let too_large = (CHECKPOINT_BYTES, "OUT_OF_RANGE");
    let checkpoint = checked_json(fields, object.field("checkpoint"), too_large);
    Some(Progress { done: done?, total, message, checkpoint })
}
