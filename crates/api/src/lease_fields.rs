//! The bodies of calls about leases. Claims and outcomes are the hot path: what is right is read
//! without a detour, and only what is wrong pays for its description.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use duly_core::id::SessionId;
use duly_core::lease::Finish;
use duly_core::limits::{SESSION_NAMES, STORE_BATCH, TIMEOUT, WAIT};
use duly_core::name::{BadName, QueueName, TypeName};
use duly_core::ports::random::Random;
use duly_core::ports::store::{Claim, Extend, ExtendLeases, LaneFilter, OpenSession};
use serde_json::value::RawValue;

use crate::error::ApiError;
use crate::fields::{self, EXACT, Fields, Place, unless_null};
use crate::session_fields::each_name;

mod outcome;
pub(crate) mod report;

/// A claim as it was asked for.
#[derive(Debug)]
pub(crate) struct ClaimBody {
    /// For everything that the session serves, until [`Self::narrow`].
    pub(crate) claim: Claim,
    /// How long to wait.
    pub(crate) patience: Duration,
    queues: Vec<QueueName>,
    types: Vec<TypeName>,
}

impl ClaimBody {
    /// Whether it is for some queues or types only.
    pub(crate) fn is_narrowed(&self) -> bool {
        !(self.queues.is_empty() && self.types.is_empty())
    }

    /// Narrows the claim to what it names, all of which the session must have registered.
    pub(crate) fn narrow(&mut self, session: &OpenSession) -> Result<(), ApiError> {
        let (mut fields, at) = (Fields::default(), Place::Body);
        if !session.queues.is_empty() {
            require_registered(&mut fields, &self.queues, &session.queues, at.field("queues"));
        }
        require_registered(&mut fields, &self.types, &session.types, at.field("types"));
        fields.end(Some(()))?;
        let only = LaneFilter {
            queues: self.queues.drain(..).collect(),
            types: self.types.drain(..).collect(),
        };
        self.claim.only = Some(Arc::new(only));
        Ok(())
    }
}

fn require_registered<T: Eq + Hash>(
    fields: &mut Fields,
    names: &[T],
    registered: &[T],
    at: Place<'_>,
) {
    let registered: HashSet<_> = registered.iter().collect();
    for (place, _) in names.iter().enumerate().filter(|(_, name)| !registered.contains(name)) {
        let detail = "is not among what the session registered";
        fields.refuse(at.item(place), "NOT_REGISTERED", detail);
    }
}

/// `{sessionId, seq, max, waitSeconds?, queues?, types?}`
pub(crate) fn claim(body: &[u8]) -> Result<ClaimBody, ApiError> {
    let body = fields::parse(body)?;
    let (mut fields, at) = (Fields::default(), Place::Body);
    let names = ["sessionId", "seq", "max", "waitSeconds", "queues", "types"];
    let Some([session, seq, max, wait, queues, types]) = fields.object_with_nulls(body, at, names)
    else {
        return fields.end(None);
    };
    // A list that is null is no list: left out, the claim is for everything.
    let [session, seq, max, wait] = [session, seq, max, wait].map(unless_null);
    let session = required_id(&mut fields, session, at.field("sessionId"));
    let seq = fields.required(seq, at.field("seq"));
    let seq = fields.whole(seq, at.field("seq"), 1..=EXACT);
    let max = fields.required(max, at.field("max"));
    let max = fields.whole(max, at.field("max"), 1..=STORE_BATCH as u64);
    let patience = fields.seconds(wait, at.field("waitSeconds"), WAIT).unwrap_or_default();
    let queues = some_names(&mut fields, queues, at.field("queues"), QueueName::given);
    let types = some_names(&mut fields, types, at.field("types"), TypeName::given);
    let claim = session.zip(seq).zip(max).map(|((session, sequence), max)| {
        Claim::new(session, sequence, usize::try_from(max).expect("within the limit"))
    });
    fields.end(claim.map(|claim| ClaimBody { claim, patience, queues, types }))
}

/// The names in a list that may be left out, but not be empty.
fn some_names<T>(
    fields: &mut Fields,
    value: Option<&RawValue>,
    at: Place<'_>,
    read: impl Fn(&str) -> Result<T, BadName>,
) -> Vec<T> {
    if value.is_none() {
        return Vec::new();
    }
    let items = fields.filled_list(value, at, SESSION_NAMES);
    each_name(fields, &items, at, read)
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
