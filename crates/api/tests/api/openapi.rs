//! The published description of the interface.

use std::collections::HashSet;

use axum::http::Method;
use duly_client::wire::BulkView;
use serde_json::Value;

use crate::support::{ask, get, operations, request, router};

#[test]
fn the_committed_document_is_the_one_the_server_publishes() {
    let current = duly_api::document_text();
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
    let operations = operations();
    assert!(operations.len() >= 20);
    let mut ids = HashSet::new();
    for (method, path, operation) in operations {
        let name = format!("{method} {path}");
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

#[tokio::test]
async fn every_refusal_of_a_body_is_documented() {
    let router = router();
    for (method, path, operation) in operations() {
        let path = path
            .replace("{id}", "01920000-0000-7000-8000-000000000000")
            .replace("{queue}", "default")
            .replace("{name}", "nightly");
        let json = [("content-type", "application/json"), ("if-match", "*")];
        let text = [("content-type", "text/plain"), ("if-match", "*")];
        let calls = [(json, ""), (json, "{"), (json, "[]"), (json, r#"{"x":1}"#), (text, "{}")];
        for (headers, body) in calls {
            let asked = request(method.clone(), &path, &headers).map(|_| body.into());
            let status = ask(&router, asked).await.status;
            let documented = operation["responses"].get(status.as_str());
            assert!(documented.is_some(), "{method} {path} answers {status} to {body:?}");
        }
    }
}

#[tokio::test]
async fn a_repeated_bulk_action_answers_as_documented() {
    let router = router();
    let document = serde_json::to_value(duly_api::document()).unwrap();
    let responses = &document["paths"]["/v1/bulk-actions"]["post"]["responses"];
    let schema = |status: &str| {
        let schema = &responses[status]["content"]["application/json"]["schema"]["$ref"];
        schema.as_str().unwrap().rsplit('/').next().unwrap().to_owned()
    };
    assert_eq!((schema("200").as_str(), schema("202").as_str()), ("BulkAnswer", "BulkView"));
    let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
    for expected in [202, 200] {
        let asked = request(Method::POST, "/v1/bulk-actions", &headers)
            .map(|_| r#"{"action":"cancel","filter":"type:a"}"#.into());
        let answer = ask(&router, asked).await;
        assert_eq!(answer.status, expected);
        let read: BulkView = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(read.action, "cancel");
    }
}
