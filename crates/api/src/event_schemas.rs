//! The JSON Schemas of events, made of the schemas of the OpenAPI document.

use std::collections::BTreeSet;

use duly_client::wire::CloudEvent;
use duly_client::wire::TaskView;
use duly_client::wire::event::{
    GoneTask, LeaderChangedData, NodeData, QueuePausedData, QueueResumedData, ScheduleFiredData,
    ScheduleSkippedData, SettingsChangedData, WorkflowEndedData, WorkflowStartedData, type_of,
};
use duly_core::event::EventKind;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::openapi;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Where the OpenAPI document and a schema keep the schemas that others refer to.
const COMPONENTS: &str = "#/components/schemas/";
const DEFS: &str = "#/$defs/";

/// One schema that every event fits; under `$defs`, one by the type of each event.
pub(crate) fn event_schemas() -> Value {
    let document = serde_json::to_value(openapi::document()).expect("it can be written as JSON");
    let components = &document["components"]["schemas"];
    let envelope = &components[CloudEvent::name().as_ref()];
    let mut defs = Map::new();
    let mut any = Vec::new();
    for kind in EventKind::ALL {
        let name = type_of(kind);
        let data = names_of_data(kind);
        for part in &data {
            define(part, components, &mut defs);
        }
        any.push(json!({"$ref": format!("{DEFS}{name}")}));
        defs.insert(name, event(kind, envelope, &data));
    }
    json!({"$schema": DIALECT, "title": "An event of Duly", "oneOf": any, "$defs": defs})
}

/// The schema of the events of one kind.
fn event(kind: EventKind, envelope: &Value, data: &[String]) -> Value {
    let mut schema = envelope.clone();
    let data: Vec<_> = data.iter().map(|name| json!({"$ref": format!("{DEFS}{name}")})).collect();
    schema["title"] = json!(type_of(kind));
    schema["properties"]["type"] = json!({"const": type_of(kind)});
    schema["properties"]["data"] = json!({"anyOf": data});
    schema
}

/// The schemas of which the data of such an event fits one.
fn names_of_data(kind: EventKind) -> Vec<String> {
    let name = match kind {
        EventKind::TaskDeleted => GoneTask::name(),
        EventKind::TaskCreated
        | EventKind::TaskUnblocked
        | EventKind::TaskStarted
        | EventKind::TaskProgressed
        | EventKind::TaskRetried
        | EventKind::TaskReleased
        | EventKind::TaskLost
        | EventKind::TaskEdited
        | EventKind::TaskSucceeded
        | EventKind::TaskFailed
        | EventKind::TaskCancelled
        | EventKind::TaskReplayed => {
            return vec![TaskView::name().into_owned(), GoneTask::name().into_owned()];
        }
        EventKind::WorkflowStarted => WorkflowStartedData::name(),
        EventKind::WorkflowEnded => WorkflowEndedData::name(),
        EventKind::ScheduleFired => ScheduleFiredData::name(),
        EventKind::ScheduleSkipped => ScheduleSkippedData::name(),
        EventKind::SettingsChanged => SettingsChangedData::name(),
        EventKind::QueuePaused => QueuePausedData::name(),
        EventKind::QueueResumed => QueueResumedData::name(),
        EventKind::NodeJoined | EventKind::NodeLeft => NodeData::name(),
        EventKind::LeaderChanged => LeaderChangedData::name(),
    };
    vec![name.into_owned()]
}

/// Copies a schema and all that it refers to.
fn define(name: &str, components: &Value, defs: &mut Map<String, Value>) {
    if defs.contains_key(name) {
        return;
    }
    let mut schema = components[name].clone();
    let mut parts = BTreeSet::new();
    redirect(&mut schema, &mut parts);
    defs.insert(name.to_owned(), schema);
    for part in parts {
        define(&part, components, defs);
    }
}

/// Lets references lead to `$defs`, and names what they lead to.
fn redirect(schema: &mut Value, parts: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                let part = value.as_str().and_then(|text| text.strip_prefix(COMPONENTS));
                match part.filter(|_| key == "$ref").map(str::to_owned) {
                    Some(part) => {
                        *value = json!(format!("{DEFS}{part}"));
                        parts.insert(part);
                    }
                    None => redirect(value, parts),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redirect(item, parts)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(schema: &Value, found: &mut BTreeSet<String>) {
        match schema {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn there_is_a_schema_for_each_kind_and_every_reference_leads_to_one() {
        let schema = event_schemas();
        let defs = schema["$defs"].as_object().unwrap();
        for kind in EventKind::ALL {
            let event = &defs[&type_of(kind)];
            assert_eq!(event["properties"]["type"]["const"], type_of(kind), "{kind}");
            assert!(event["properties"]["id"].is_object(), "{kind}");
        }
        let mut found = BTreeSet::new();
        references(&schema, &mut found);
        assert!(found.contains("#/$defs/Task") && found.contains("#/$defs/GoneTask"), "{found:?}");
        for reference in found {
            let name = reference.strip_prefix(DEFS).unwrap_or_else(|| panic!("{reference}"));
            assert!(defs.get(name).is_some_and(Value::is_object), "{reference}");
        }
    }
}
