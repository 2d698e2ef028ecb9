//! The bodies of requests about leases. Claims and outcomes are a hot path: valid values are read
//! in place, and only an error costs more.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use duly_client::wire::{ClaimRequest, ExtendRequest, Extension, FinishRequest};
use duly_core::id::SessionId;
use duly_core::lease::Finish;
use duly_core::limits::{SESSION_NAMES, STORE_BATCH, TIMEOUT, WAIT};
use duly_core::name::{BadName, QueueName, TenantName, TypeName};
use duly_core::ports::random::Random;
use duly_core::ports::store::{Claim, Extend, ExtendLeases, LaneFilter, OpenSession};

use crate::error::ApiError;
use crate::fields::{self, EXACT, Field, Fields, Pointer};
use crate::session_fields::each_name;

mod outcome;
pub(crate) mod report;

/// A claim that was read.
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
        let (mut fields, at) = (Fields::default(), Pointer::Root);
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
    at: Pointer<'_>,
) {
    let registered: HashSet<_> = registered.iter().collect();
    for (index, _) in names.iter().enumerate().filter(|(_, name)| !registered.contains(name)) {
        let detail = "is not among what the session registered";
        fields.refuse(at.item(index), "NOT_REGISTERED", detail);
    }
}

/// Reads a [`ClaimRequest`].
pub(crate) fn claim(body: &[u8]) -> Result<ClaimBody, ApiError> {
    let (mut fields, object) = fields::open::<ClaimRequest>(body)?;
    let session = required_id(&mut fields, object.field("sessionId"));
    let seq = fields.required(object.field("seq"));
    let seq = fields.whole(seq, 1..=EXACT);
    let max = fields.required(object.field("max"));
    let max = fields.whole(max, 1..=STORE_BATCH as u64);
    let patience = fields.seconds(object.field("waitSeconds"), WAIT).unwrap_or_default();
    // A list that is null is refused: left out, the claim is for everything.
    let queues = some_names(&mut fields, object.field_or_null("queues"), QueueName::given);
    let types = some_names(&mut fields, object.field_or_null("types"), TypeName::given);
    let claim = session.zip(seq).zip(max).map(|((session, sequence), max)| {
        Claim::new(session, sequence, usize::try_from(max).expect("within the limit"))
    });
    fields.end(claim.map(|claim| ClaimBody { claim, patience, queues, types }))
}

/// The names in a list that may be left out, but not be empty.
fn some_names<T>(
    fields: &mut Fields,
    list: Field<'_, '_>,
    read: impl Fn(&str) -> Result<T, BadName>,
) -> Vec<T> {
    if !list.is_given() {
        return Vec::new();
    }
    let items = fields.filled_list(list, SESSION_NAMES);
    each_name(fields, list, &items, read)
}

/// Reads a [`FinishRequest`].
pub(crate) fn finishes(
    body: &[u8],
    tenant: &TenantName,
    random: &dyn Random,
) -> Result<(SessionId, Vec<Finish>), ApiError> {
    let (mut fields, object) = fields::open::<FinishRequest>(body)?;
    let session = required_id(&mut fields, object.field("sessionId"));
    let list = object.field("outcomes");
    let outcomes = fields.filled_list(list, STORE_BATCH);
    let mut finishes = Vec::with_capacity(outcomes.len());
    for (index, value) in outcomes.into_iter().enumerate() {
        finishes.extend(outcome::read(&mut fields, list.item(index, value), tenant, random));
    }
    fields.end(session.map(|session| (session, finishes)))
}

/// Reads an [`ExtendRequest`].
pub(crate) fn extensions(body: &[u8]) -> Result<ExtendLeases, ApiError> {
    let (mut fields, object) = fields::open::<ExtendRequest>(body)?;
    let session = required_id(&mut fields, object.field("sessionId"));
    let list = object.field("leases");
    let items = fields.filled_list(list, STORE_BATCH);
    let mut leases = Vec::with_capacity(items.len());
    for (index, value) in items.into_iter().enumerate() {
        leases.extend(extension(&mut fields, list.item(index, value)));
    }
    fields.end(session.map(|session| ExtendLeases { session, leases }))
}

fn extension(fields: &mut Fields, item: Field<'_, '_>) -> Option<Extend> {
    let object = fields.object::<Extension>(item)?;
    let task = required_id(fields, object.field("taskId"));
    let epoch = required_epoch(fields, object.field("epoch"));
    let seconds = fields.required(object.field("seconds"));
    let by = fields.seconds(seconds, TIMEOUT);
    if by.is_some_and(|by| by.is_zero()) {
        fields.refuse(seconds.at, "OUT_OF_RANGE", "must be above 0");
    }
    Some(Extend { task: task?, epoch: epoch?, by: by? })
}

fn required_id<T: std::str::FromStr>(fields: &mut Fields, field: Field<'_, '_>) -> Option<T> {
    let field = fields.required(field);
    fields.id(field)
}

fn required_epoch(fields: &mut Fields, field: Field<'_, '_>) -> Option<u32> {
    let field = fields.required(field);
    let epoch = fields.whole(field, 0..=u32::MAX.into())?;
    u32::try_from(epoch).ok()
}

#[cfg(test)]
mod tests;
