//! The bodies of calls about leases. Claims and outcomes are the hot path: what is right is read
//! without a detour, and only what is wrong pays for its description.

use std::time::Duration;

use duly_core::id::SessionId;
use duly_core::lease::Finish;
use duly_core::limits::{STORE_BATCH, TIMEOUT, WAIT};
use duly_core::ports::random::Random;
use duly_core::ports::store::{Claim, Extend, ExtendLeases};
use serde_json::value::RawValue;

use crate::error::ApiError;
use crate::fields::{self, EXACT, Fields, Place};

mod outcome;
pub(crate) mod report;

/// `{sessionId, seq, max, waitSeconds?}`, and how long to wait.
pub(crate) fn claim(body: &[u8]) -> Result<(Claim, Duration), ApiError> {
    let body = fields::parse(body)?;
    let (mut fields, at) = (Fields::default(), Place::Body);
    let names = ["sessionId", "seq", "max", "waitSeconds", "queues", "types"];
    let Some([session, seq, max, wait, queues, types]) = fields.object(body, at, names) else {
        return fields.end(None);
    };
    fields.unsupported(queues, at.field("queues"));
    fields.unsupported(types, at.field("types"));
    let session = required_id(&mut fields, session, at.field("sessionId"));
    let seq = fields.required(seq, at.field("seq"));
    let seq = fields.whole(seq, at.field("seq"), 1..=EXACT);
    let max = fields.required(max, at.field("max"));
    let max = fields.whole(max, at.field("max"), 1..=STORE_BATCH as u64);
    let wait = fields.seconds(wait, at.field("waitSeconds"), WAIT).unwrap_or_default();
    let claim = session.zip(seq).zip(max).map(|((session, sequence), max)| Claim {
        session,
        sequence,
        max: usize::try_from(max).expect("within the limit"),
    });
    fields.end(claim.map(|claim| (claim, wait)))
}

/// `{sessionId, outcomes}`
pub(crate) fn finishes(
    body: &[u8],
    random: &dyn Random,
) -> Result<(SessionId, Vec<Finish>), ApiError> {
    let body = fields::parse(body)?;
    let (mut fields, at) = (Fields::default(), Place::Body);
    let Some([session, outcomes]) = fields.object(body, at, ["sessionId", "outcomes"]) else {
        return fields.end(None);
    };
    let session = required_id(&mut fields, session, at.field("sessionId"));
    let here = at.field("outcomes");
    let outcomes = fields.filled_list(outcomes, here, STORE_BATCH);
    let mut finishes = Vec::with_capacity(outcomes.len());
    for (place, value) in outcomes.into_iter().enumerate() {
        finishes.extend(outcome::read(&mut fields, value, here.item(place), random));
    }
    fields.end(session.map(|session| (session, finishes)))
}

/// `{sessionId, leases: [{taskId, epoch, seconds}]}`
pub(crate) fn extensions(body: &[u8]) -> Result<ExtendLeases, ApiError> {
    let body = fields::parse(body)?;
    let (mut fields, at) = (Fields::default(), Place::Body);
    let Some([session, leases]) = fields.object(body, at, ["sessionId", "leases"]) else {
        return fields.end(None);
    };
    let session = required_id(&mut fields, session, at.field("sessionId"));
    let here = at.field("leases");
    let items = fields.filled_list(leases, here, STORE_BATCH);
    let mut leases = Vec::with_capacity(items.len());
    for (place, value) in items.into_iter().enumerate() {
        leases.extend(extension(&mut fields, value, here.item(place)));
    }
    fields.end(session.map(|session| ExtendLeases { session, leases }))
}

fn extension(fields: &mut Fields, value: &RawValue, at: Place<'_>) -> Option<Extend> {
    let [task, epoch, seconds] = fields.object(value, at, ["taskId", "epoch", "seconds"])?;
    let task = required_id(fields, task, at.field("taskId"));
    let epoch = required_epoch(fields, epoch, at.field("epoch"));
    let here = at.field("seconds");
    let seconds = fields.required(seconds, here);
    let by = fields.seconds(seconds, here, TIMEOUT);
    if by.is_some_and(|by| by.is_zero()) {
        fields.refuse(here, "OUT_OF_RANGE", "must be above 0");
    }
    Some(Extend { task: task?, epoch: epoch?, by: by? })
}

fn required_id<T: std::str::FromStr>(
    fields: &mut Fields,
    value: Option<&RawValue>,
    at: Place<'_>,
) -> Option<T> {
    let value = fields.required(value, at);
    fields.id(value, at)
}

fn required_epoch(fields: &mut Fields, value: Option<&RawValue>, at: Place<'_>) -> Option<u32> {
    let value = fields.required(value, at);
    let epoch = fields.whole(value, at, 0..=u32::MAX.into())?;
    u32::try_from(epoch).ok()
}

#[cfg(test)]
mod tests;
