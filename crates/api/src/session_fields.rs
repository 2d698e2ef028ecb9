//! The bodies of calls about a worker's session.

use std::time::Duration;

use duly_core::id::{SessionId, TaskId};
use duly_core::limits::{CONCURRENCY, SESSION_NAMES, WAIT, WORKER_CHARS};
use duly_core::name::{BadName, QueueName, TenantName, TypeName};
use duly_core::ports::store::Beat;
use duly_engine::command::worker::RemoteWorker;
use serde_json::value::RawValue;

use crate::error::ApiError;
use crate::fields::{self, EXACT, Fields, Place, unless_null};

/// What a worker is called that does not say.
const NAMELESS: &str = "worker";

/// `{name?, types, queues?, capacity?}`
pub(crate) fn worker(body: &[u8], tenant: &TenantName) -> Result<RemoteWorker, ApiError> {
    let body = fields::parse(body)?;
    let (mut fields, at) = (Fields::default(), Place::Body);
    let names = ["name", "types", "queues", "capacity"];
    let Some([name, types, queues, capacity]) = fields.object_with_nulls(body, at, names) else {
        return fields.end(None);
    };
    // A list that is null is no list: left out, the worker serves every queue.
    let [name, capacity] = [name, capacity].map(unless_null);
    let name = worker_name(&mut fields, name);
    let here = at.field("types");
    let types = fields.filled_list(types, here, SESSION_NAMES);
    let types = each_name(&mut fields, &types, here, TypeName::given);
    let here = at.field("queues");
    let queues = fields.list(queues, here, SESSION_NAMES);
    let queues = each_name(&mut fields, &queues, here, QueueName::given);
    // For people, who cannot see it yet.
    fields.whole(capacity, at.field("capacity"), 1..=CONCURRENCY as u64);
    fields.end(Some(RemoteWorker { name, tenant: tenant.clone(), types, queues }))
}

/// `{received?, unstarted?}`; a body that is left out is a beat of a worker that holds nothing.
pub(crate) fn beat(body: &[u8], session: SessionId) -> Result<(Beat, Duration), ApiError> {
    let mut beat = Beat { session, received: Vec::new(), unstarted: Vec::new() };
    if body.is_empty() {
        return Ok((beat, Duration::ZERO));
    }
    let body = fields::parse(body)?;
    let (mut fields, at) = (Fields::default(), Place::Body);
    let names = ["received", "unstarted", "waitSeconds"];
    let Some([received, unstarted, wait]) = fields.object_with_nulls(body, at, names) else {
        return fields.end(None);
    };
    let here = at.field("received");
    for (place, seq) in fields.list(received, here, CONCURRENCY).into_iter().enumerate() {
        beat.received.extend(fields.whole(Some(seq), here.item(place), 1..=EXACT));
    }
    let here = at.field("unstarted");
    for (place, task) in fields.list(unstarted, here, CONCURRENCY).into_iter().enumerate() {
        beat.unstarted.extend(fields.id::<TaskId>(Some(task), here.item(place)));
    }
    let wait = fields.seconds(wait, at.field("waitSeconds"), WAIT).unwrap_or_default();
    fields.end(Some((beat, wait)))
}

fn worker_name(fields: &mut Fields, name: Option<&RawValue>) -> String {
    let at = Place::Body;
    let Some(name) = fields.string(name, at.field("name")) else { return NAMELESS.to_owned() };
    let chars = name.chars().count();
    if chars == 0 || chars > WORKER_CHARS || name.chars().any(char::is_control) {
        let detail = format!("is 1 to {WORKER_CHARS} characters, none of them a control character");
        fields.refuse(at.field("name"), "OUT_OF_RANGE", detail);
    }
    name
}

/// The names in a list.
pub(crate) fn each_name<T>(
    fields: &mut Fields,
    items: &[&RawValue],
    at: Place<'_>,
    read: impl Fn(&str) -> Result<T, BadName>,
) -> Vec<T> {
    let mut names = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let Some(text) = fields.string(Some(item), at.item(place)) else { continue };
        match read(&text) {
            Ok(name) => names.push(name),
            Err(bad) => fields.refuse(at.item(place), "INVALID_NAME", bad.to_string()),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> Vec<String> {
        let error = worker(body.as_bytes(), &TenantName::default_tenant()).unwrap_err();
        let of =
            |error: &duly_core::submit::FieldError| format!("{} {}", error.pointer, error.code);
        error.errors().iter().map(of).collect()
    }

    #[test]
    fn only_types_are_required() {
        let body = br#"{"types":["a"],"name":null,"capacity":null}"#;
        let worker = worker(body, &TenantName::default_tenant()).unwrap();
        assert_eq!((worker.name.as_str(), worker.types.len()), ("worker", 1));
        assert!(worker.queues.is_empty());
    }

    #[test]
    fn a_list_that_is_null_is_refused() {
        assert_eq!(refused(r#"{"types":["a"],"queues":null}"#), ["/queues WRONG_TYPE"]);
        assert_eq!(refused(r#"{"types":null}"#), ["/types WRONG_TYPE"]);
        let session = "01920000-0000-7000-8000-00000000000a".parse().unwrap();
        assert!(beat(br#"{"received":null}"#, session).is_err());
        assert!(beat(br#"{"unstarted":null}"#, session).is_err());
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let body = r#"{"name":"","types":["a","!",3],"queues":["/"],"capacity":0,"x":1}"#;
        assert_eq!(
            refused(body),
            [
                "/x UNKNOWN_FIELD",
                "/name OUT_OF_RANGE",
                "/types/1 INVALID_NAME",
                "/types/2 WRONG_TYPE",
                "/queues/0 INVALID_NAME",
                "/capacity OUT_OF_RANGE",
            ]
        );
    }
}
