//! Events about anything but a task, as stores keep them: a JSON array of kind, tenant, queue, subject and
//! data.

use duly_core::event::{About, Event, EventKind, Place};
use duly_core::name::{QueueName, TenantName};
use duly_core::time::Timestamp;
use serde_json::value::RawValue;

/// The text of an event; nothing for one about a task.
pub(crate) fn encode(event: &Event) -> Option<String> {
    let About::Other { subject, data } = &event.about else { return None };
    let data = RawValue::from_string(data.to_string()).expect("it was made from JSON");
    let Place { tenant, queue, .. } = &event.place;
    let text = serde_json::to_string(&(event.kind.number(), tenant, queue, subject, &data));
    Some(text.expect("names and texts become JSON"))
}

/// The event of a text, if it is one.
pub(crate) fn decode(text: &str, at: Timestamp) -> Option<Event> {
    type Parts<'a> = (u8, Option<TenantName>, Option<QueueName>, String, &'a RawValue);
    let (kind, tenant, queue, subject, data): Parts<'_> = serde_json::from_str(text).ok()?;
    let place = Place { tenant, queue, task_type: None };
    let about = About::Other { subject, data: data.get().into() };
    Some(Event { kind: EventKind::from_number(kind)?, at, place, about })
}
