//! Looking at workers, and draining them.

use std::time::Duration;

use axum::Router;
use duly_core::lease::Outcome;
use serde_json::{Value, json};

use crate::support::{Hand, ask, engine, get, post, router, router_of, router_over};

async fn register(router: &Router, body: &Value) -> String {
    let answer = ask(router, post("/sessions", body.to_string())).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["sessionId"].as_str().unwrap().to_owned()
}

async fn workers(router: &Router) -> Vec<Value> {
    let answer = ask(router, get("/v1/workers")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["nextCursor"], Value::Null);
    answer.json()["items"].as_array().unwrap().clone()
}

async fn drain(router: &Router, id: &str, body: &'static str) -> Value {
    let answer = ask(router, post(&format!("/v1/workers/{id}/drain"), body)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// The ids of the tasks that a claim brings at once.
async fn claim(router: &Router, session: &str, seq: u64) -> Vec<Value> {
    let body = json!({"sessionId": session, "seq": seq, "max": 10});
    let answer = ask(router, post("/leases", body.to_string())).await.json();
    let leases = answer["leases"].as_array().unwrap();
    leases.iter().map(|lease| lease["task"]["taskId"].clone()).collect()
}

async fn submit(router: &Router) -> Value {
    ask(router, post("/tasks", r#"{"type":"a"}"#)).await.json()["taskId"].take()
}

#[tokio::test]
async fn workers_of_nodes_and_ones_own_remote_ones_are_listed() {
    let engine = engine();
    let (own, other) = (router_over(&engine), router_of(&engine, "other"));
    let _hand = Hand::of(&engine, &["b"]).await;
    let body = json!({"name": "mailer", "types": ["a", "B"], "queues": ["Mail"]});
    let id = register(&own, &body).await;
    let found = workers(&own).await;
    let names: Vec<_> = found.iter().map(|worker| worker["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["hand", "mailer"], "by name, and without the system's own");
    let age = found[1]["beatAgeSeconds"].as_f64().unwrap();
    assert!((0.0..60.0).contains(&age), "{age}");
    let expected = json!({
        "workerId": id, "name": "mailer", "home": "remote", "nodeId": null, "tenant": "default",
        "types": ["a", "B"], "queues": ["Mail"], "state": "active", "beatAt": found[1]["beatAt"],
        "beatAgeSeconds": age, "leases": 0,
    });
    assert_eq!(found[1], expected);
    assert_eq!((&found[0]["home"], &found[0]["tenant"]), (&json!("node"), &Value::Null));
    assert!(found[0]["nodeId"].is_string());
    let foreign = workers(&other).await;
    assert_eq!(foreign.len(), 1, "the remote worker of another tenant is hidden");
    let refused = ask(&other, post(&format!("/workers/{id}/drain"), "")).await;
    assert_eq!(refused.problem().1, "SESSION_NOT_FOUND");
    assert!(refused.json()["detail"].as_str().unwrap().contains("GET /workers"), "{refused:?}");
}

#[tokio::test]
async fn a_remote_worker_that_drains_is_told_and_gets_nothing() {
    let router = router();
    let id = register(&router, &json!({"types": ["a"]})).await;
    let held = submit(&router).await;
    assert_eq!(claim(&router, &id, 1).await, [held]);
    let beat = async || ask(&router, post(&format!("/sessions/{id}/heartbeat"), "")).await.json();
    assert_eq!(beat().await["drain"], false);
    let worker = drain(&router, &id, "").await;
    assert_eq!((&worker["state"], &worker["leases"]), (&json!("draining"), &json!(1)));
    assert_eq!(workers(&router).await[0]["state"], "draining");
    assert_eq!(beat().await["drain"], true);
    let waiting = submit(&router).await;
    assert!(claim(&router, &id, 2).await.is_empty());
    let wait = json!({"sessionId": id, "seq": 2, "max": 1, "waitSeconds": 0.05});
    let answer = ask(&router, post("/leases", wait.to_string())).await.json();
    assert_eq!(answer["leases"], json!([]));
    let task = ask(&router, get(&format!("/tasks/{}", waiting.as_str().unwrap()))).await.json();
    assert_eq!(task["status"], "PENDING");
    assert_eq!(drain(&router, &id, r#"{"drain":false}"#).await["state"], "active");
    assert_eq!(beat().await["drain"], false);
    assert_eq!(claim(&router, &id, 2).await, [waiting]);
}

#[tokio::test]
async fn a_claim_that_waits_is_not_served_once_the_drain_is_answered() {
    let engine = engine();
    let router = router_over(&engine);
    let id = register(&router, &json!({"types": ["a"]})).await;
    let wait = json!({"sessionId": id, "seq": 1, "max": 100, "waitSeconds": 60}).to_string();
    let waiting = ask(&router, post("/leases", wait));
    tokio::pin!(waiting);
    // The claim waits at the node when the drain comes.
    let early = tokio::time::timeout(Duration::from_millis(50), &mut waiting).await;
    assert!(early.is_err(), "there is nothing to do yet");
    drain(&router, &id, r#"{"drain":true}"#).await;
    for _ in 0..20 {
        submit(&router).await;
    }
    let early = tokio::time::timeout(Duration::from_millis(50), &mut waiting).await;
    assert!(early.is_err(), "the drained worker was given something");
    let running = ask(&router, get("/tasks?filter=status:RUNNING")).await.json();
    assert_eq!(running["items"], json!([]));
    drain(&router, &id, r#"{"drain":false}"#).await;
    let served = waiting.await.json();
    assert!(!served["leases"].as_array().unwrap().is_empty(), "{served}");
}

#[tokio::test]
async fn the_worker_of_a_node_drains_too() {
    let engine = engine();
    let router = router_over(&engine);
    let hand = Hand::of(&engine, &["a"]).await;
    let id = workers(&router).await[0]["workerId"].as_str().unwrap().to_owned();
    drain(&router, &id, "{}").await;
    let task = submit(&router).await;
    let end = hand.end(Outcome::Success { result: None }, None);
    tokio::pin!(end);
    let early = tokio::time::timeout(Duration::from_millis(50), &mut end).await;
    assert!(early.is_err(), "the drained worker was given something");
    drain(&router, &id, r#"{"drain":false}"#).await;
    assert_eq!(json!(end.await), task);
}

#[tokio::test]
async fn bad_drains_are_refused() {
    let router = router();
    let id = register(&router, &json!({"types": ["a"]})).await;
    for (id, body, code) in [
        ("01920000-0000-7000-8000-000000000000", "", "SESSION_NOT_FOUND"),
        (&id[..13], "", "SESSION_NOT_FOUND"),
        ("x", "{}", "SESSION_NOT_FOUND"),
        (&id, "{", "MALFORMED_JSON"),
        (&id, r#"{"drain":1}"#, "INVALID_FIELDS"),
        (&id, r#"{"undrain":true}"#, "INVALID_FIELDS"),
    ] {
        let answer = ask(&router, post(&format!("/workers/{id}/drain"), body)).await;
        assert_eq!(answer.problem().1, code, "{id} {body}");
    }
}
