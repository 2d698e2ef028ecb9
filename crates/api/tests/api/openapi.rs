//! The published description of the interface.

use std::collections::HashSet;

use serde_json::Value;

use crate::support::{ask, get, router};

fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, item)| {
            let item = item.as_object().unwrap();
            item.iter().map(move |(method, operation)| (format!("{method} {path}"), operation))
        })
        .collect()
}

#[test]
fn the_committed_document_is_the_one_the_server_publishes() {
    let current = duly_api::document().to_pretty_json().unwrap();
    let committed = include_str!("../../openapi.json");
    assert!(
        committed.trim_end() == current,
        "the interface changed; write the document anew with \
         `cargo run -p duly-api --example openapi > crates/api/openapi.json` and review it"
    );
}

#[tokio::test]
async fn the_document_is_served_as_openapi_3_1() {
    let answer = ask(&router(), get("/openapi.json")).await;
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.json()["openapi"], "3.1.0");
    let committed: Value = serde_json::from_str(include_str!("../../openapi.json")).unwrap();
    assert_eq!(answer.json(), committed);
}

#[test]
fn every_operation_has_an_id_a_summary_and_answers() {
    let document = serde_json::to_value(duly_api::document()).unwrap();
    let operations = operations(&document);
    assert!(operations.len() >= 20);
    let mut ids = HashSet::new();
    for (name, operation) in operations {
        let id = operation["operationId"].as_str().unwrap_or_else(|| panic!("{name}"));
        assert!(id.split_once('_').is_some() && ids.insert(id.to_owned()), "{name}: {id}");
        assert!(operation["summary"].is_string(), "{name}");
        for (status, answer) in operation["responses"].as_object().unwrap() {
            let is_readiness = id == "get_readiness" && status == "503";
            let is_problem = !status.starts_with('2') && !is_readiness;
            let content = answer["content"].as_object();
            assert_eq!(content.is_none(), status == "204", "{name}");
            let is_found = content.is_some_and(|by| by.contains_key("application/problem+json"));
            assert_eq!(is_found, is_problem, "{name}");
        }
    }
}

#[test]
fn every_code_is_spelled_and_used_once() {
    let mut seen = HashSet::new();
    for code in duly_api::Code::ALL {
        assert!(seen.insert(code.as_str()), "{code:?}");
        assert!(code.as_str().bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'));
        assert!(code.status().as_u16() >= 400);
    }
}

#[test]
fn names_are_camel_case() {
    fn names(value: &Value, found: &mut Vec<String>) {
        if let Some(properties) = value.get("properties").and_then(Value::as_object) {
            found.extend(properties.keys().cloned());
        }
        let children: Vec<&Value> = match value {
            Value::Object(fields) => fields.values().collect(),
            Value::Array(items) => items.iter().collect(),
            _ => Vec::new(),
        };
        children.into_iter().for_each(|child| names(child, found));
    }
    let document = serde_json::to_value(duly_api::document()).unwrap();
    let mut found = Vec::new();
    names(&document["components"]["schemas"], &mut found);
    assert!(found.contains(&"taskId".to_owned()));
    let bad: Vec<_> = found.iter().filter(|name| name.contains('_')).collect();
    assert!(bad.is_empty(), "{bad:?}");
}
