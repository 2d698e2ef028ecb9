//! The bodies of requests about a worker's session.

use std::time::Duration;

use duly_client::wire::{HeartbeatRequest, RegisterRequest};
use duly_core::id::{SessionId, TaskId};
use duly_core::limits::{CONCURRENCY, SESSION_NAMES, WAIT, WORKER_CHARS};
use duly_core::name::{BadName, QueueName, TenantName, TypeName};
use duly_core::ports::store::Heartbeat;
use duly_engine::command::worker::RemoteWorker;
use serde_json::value::RawValue;

use crate::error::ApiError;
use crate::fields::{self, EXACT, Field, Fields};

/// The name of a worker that sends none.
const NAMELESS: &str = "worker";

/// Reads a [`RegisterRequest`].
pub(crate) fn worker(body: &[u8], tenant: &TenantName) -> Result<RemoteWorker, ApiError> {
    let (mut fields, object) = fields::open::<RegisterRequest>(body)?;
    let name = worker_name(&mut fields, object.field("name"));
    // A list that is null is refused: left out, the worker serves every queue.
    let types = object.field_or_null("types");
    let items = fields.filled_list(types, SESSION_NAMES);
    let types = each_name(&mut fields, types, &items, TypeName::given);
    let queues = object.field_or_null("queues");
    let items = fields.list(queues, SESSION_NAMES);
    let queues = each_name(&mut fields, queues, &items, QueueName::given);
    // It is checked and not stored: nothing shows it yet.
    fields.whole(object.field("capacity"), 1..=CONCURRENCY as u64);
    fields.end(Some(RemoteWorker { name, tenant: tenant.clone(), types, queues, owner: None }))
}

/// Reads a [`HeartbeatRequest`]. A worker that holds nothing may leave the body out.
pub(crate) fn beat(body: &[u8], session: SessionId) -> Result<(Heartbeat, Duration), ApiError> {
    let mut beat = Heartbeat { session, received: Vec::new(), unstarted: Vec::new() };
    let (mut fields, object) = fields::open_optional::<HeartbeatRequest>(body)?;
    let received = object.field_or_null("received");
    for (index, seq) in fields.list(received, CONCURRENCY).into_iter().enumerate() {
        beat.received.extend(fields.whole(received.item(index, seq), 1..=EXACT));
    }
    let unstarted = object.field_or_null("unstarted");
    for (index, task) in fields.list(unstarted, CONCURRENCY).into_iter().enumerate() {
        beat.unstarted.extend(fields.id::<TaskId>(unstarted.item(index, task)));
    }
    let wait = fields.seconds(object.field_or_null("waitSeconds"), WAIT).unwrap_or_default();
    fields.end(Some((beat, wait)))
}

fn worker_name(fields: &mut Fields, field: Field<'_, '_>) -> String {
    let Some(name) = fields.string(field) else { return NAMELESS.to_owned() };
    let chars = name.chars().count();
    if chars == 0 || chars > WORKER_CHARS || name.chars().any(char::is_control) {
        let detail = format!("is 1 to {WORKER_CHARS} characters, none of them a control character");
        fields.refuse(field.at, "OUT_OF_RANGE", detail);
    }
    name
}

/// The names in a list.
pub(crate) fn each_name<'a, T>(
    fields: &mut Fields,
    list: Field<'a, '_>,
    items: &[&'a RawValue],
    read: impl Fn(&str) -> Result<T, BadName>,
) -> Vec<T> {
    let mut names = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let item = list.item(index, item);
        let Some(text) = fields.string(item) else { continue };
        match read(&text) {
            Ok(name) => names.push(name),
            Err(bad) => fields.refuse(item.at, "INVALID_NAME", bad.to_string()),
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
