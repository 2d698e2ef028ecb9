//! Sessions of remote workers.

use axum::Router;
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, ask, engine, get, post, request, router, router_of};

const ID: &str = "01920000-0000-7000-8000-00000000000a";

async fn register(router: &Router, body: &Value) -> Answer {
    ask(router, post("/v1/sessions", body.to_string())).await
}

/// An open session that serves `a`.
async fn session(router: &Router) -> String {
    let answer = register(router, &json!({"types": ["a"]})).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["sessionId"].as_str().unwrap().to_owned()
}

async fn beat(router: &Router, id: &str, body: &Value) -> Answer {
    ask(router, post(&format!("/v1/sessions/{id}/heartbeat"), body.to_string())).await
}

async fn leave(router: &Router, id: &str) -> Answer {
    ask(router, request(Method::DELETE, &format!("/v1/sessions/{id}"), &[])).await
}

#[tokio::test]
async fn a_session_is_opened_beats_and_ends() {
    let router = router();
    let body = json!({"name": "w-1", "types": ["a", "b"], "queues": ["mail"], "capacity": 8});
    let opened = register(&router, &body).await;
    assert_eq!(opened.status, 201, "{opened:?}");
    let session = opened.json();
    assert!(session["heartbeatSeconds"].as_f64().unwrap() > 0.0);
    assert!(session["ttlSeconds"].as_f64() > session["heartbeatSeconds"].as_f64());
    let id = session["sessionId"].as_str().unwrap();
    let quiet = json!({"lost": [], "cancel": [], "drain": false});
    assert_eq!(beat(&router, id, &json!({})).await.json(), quiet);
    let bare = request(Method::POST, &format!("/sessions/{id}/heartbeat"), &[]);
    assert_eq!(ask(&router, bare).await.json(), quiet);
    for _ in 0..2 {
        let left = leave(&router, id).await;
        assert_eq!((left.status.as_u16(), left.body), (204, Vec::new()));
    }
    assert_eq!(beat(&router, id, &json!({})).await.problem().1, "SESSION_NOT_FOUND");
}

#[tokio::test]
async fn a_session_serves_what_it_said() {
    let router = router();
    let task = ask(&router, post("/tasks", r#"{"type":"a"}"#)).await.json();
    assert_eq!(task["warnings"][0]["code"], "NO_WORKER_FOR_TYPE");
    session(&router).await;
    let task = ask(&router, post("/tasks", r#"{"type":"a"}"#)).await.json();
    assert_eq!(task["warnings"], json!([]));
}

#[tokio::test]
async fn a_cancelled_task_is_news() {
    let router = router();
    let id = session(&router).await;
    let task = ask(&router, post("/tasks", r#"{"type":"a"}"#)).await.json();
    let task = task["taskId"].as_str().unwrap();
    let claim = json!({"sessionId": id, "seq": 1, "max": 1}).to_string();
    let leases = ask(&router, post("/leases", claim)).await.json()["leases"].clone();
    assert_eq!(leases[0]["task"]["taskId"], json!(task));
    ask(&router, post(&format!("/tasks/{task}/cancel"), "{}")).await;
    let news = beat(&router, &id, &json!({"received": [1], "unstarted": []})).await.json();
    assert_eq!(news["cancel"], json!([{"taskId": task, "epoch": leases[0]["epoch"]}]));
    assert_eq!(news["lost"], json!([]));
}

#[tokio::test]
async fn what_a_session_holds_goes_back_when_it_leaves() {
    let router = router();
    let id = session(&router).await;
    let task = ask(&router, post("/tasks", r#"{"type":"a"}"#)).await.json();
    let claim = json!({"sessionId": id, "seq": 1, "max": 1}).to_string();
    assert_eq!(ask(&router, post("/leases", claim)).await.json()["leases"][0]["epoch"], 1);
    assert_eq!(leave(&router, &id).await.status, 204);
    let path = format!("/tasks/{}", task["taskId"].as_str().unwrap());
    let task = ask(&router, get(&path)).await.json();
    assert_eq!((&task["status"], &task["attempt"]), (&json!("PENDING"), &json!(0)));
    assert_eq!(task["losses"], 0);
}

#[tokio::test]
async fn sessions_that_cannot_be_are_not_found() {
    let router = router();
    for id in ["x", ID] {
        let answer = beat(&router, id, &json!({})).await;
        assert_eq!(answer.problem(), (404, "SESSION_NOT_FOUND".to_owned(), Vec::new()), "{id}");
    }
    assert_eq!(leave(&router, "x").await.problem().1, "SESSION_NOT_FOUND");
}

#[tokio::test]
async fn a_session_belongs_to_one_tenant() {
    let engine = engine();
    let (ada, bob) = (router_of(&engine, "ada"), router_of(&engine, "bob"));
    let id = session(&ada).await;
    assert_eq!(beat(&bob, &id, &json!({})).await.problem().1, "SESSION_NOT_FOUND");
    leave(&bob, &id).await;
    assert_eq!(beat(&ada, &id, &json!({})).await.status, 200);
}

#[tokio::test]
async fn bad_registrations_are_refused_field_by_field() {
    let router = router();
    let many: Vec<_> = (0..1001).map(|n| format!("t{n}")).collect();
    for (body, errors) in [
        (json!([]), vec![" WRONG_TYPE"]),
        (json!({}), vec!["/types REQUIRED"]),
        (json!({"types": []}), vec!["/types REQUIRED"]),
        (json!({"types": "a"}), vec!["/types WRONG_TYPE"]),
        (json!({"types": ["a", "!"]}), vec!["/types/1 INVALID_NAME"]),
        (json!({"types": [1]}), vec!["/types/0 WRONG_TYPE"]),
        (json!({"types": many}), vec!["/types TOO_MANY"]),
        (json!({"types": ["a"], "queues": many}), vec!["/queues TOO_MANY"]),
        (json!({"types": ["a"], "queues": {}}), vec!["/queues WRONG_TYPE"]),
        (json!({"types": ["a"], "queues": [""]}), vec!["/queues/0 INVALID_NAME"]),
        (json!({"types": ["a"], "name": 1}), vec!["/name WRONG_TYPE"]),
        (json!({"types": ["a"], "name": ""}), vec!["/name OUT_OF_RANGE"]),
        (json!({"types": ["a"], "name": "x".repeat(201)}), vec!["/name OUT_OF_RANGE"]),
        (json!({"types": ["a"], "name": "a\u{0}"}), vec!["/name OUT_OF_RANGE"]),
        (json!({"types": ["a"], "capacity": 0}), vec!["/capacity OUT_OF_RANGE"]),
        (json!({"types": ["a"], "capacity": 1.5}), vec!["/capacity OUT_OF_RANGE"]),
        (json!({"types": ["a"], "capacity": "8"}), vec!["/capacity WRONG_TYPE"]),
        (json!({"types": ["a"], "tenant": "b"}), vec!["/tenant UNKNOWN_FIELD"]),
    ] {
        let wanted = errors.into_iter().map(str::to_owned).collect();
        let answer = register(&router, &body).await;
        assert_eq!(answer.problem(), (422, "INVALID_FIELDS".to_owned(), wanted), "{body:.80}");
    }
    let bare = request(Method::POST, "/sessions", &[]);
    assert_eq!(ask(&router, bare).await.problem().1, "UNSUPPORTED_MEDIA_TYPE");
}

#[tokio::test]
async fn bad_beats_are_refused_field_by_field() {
    let router = router();
    for (body, errors) in [
        (json!(7), vec![" WRONG_TYPE"]),
        (json!({"received": 1}), vec!["/received WRONG_TYPE"]),
        (json!({"received": [1, 0]}), vec!["/received/1 OUT_OF_RANGE"]),
        (json!({"received": ["1"]}), vec!["/received/0 WRONG_TYPE"]),
        (json!({"received": vec![1; 10_001]}), vec!["/received TOO_MANY"]),
        (json!({"unstarted": ["x"]}), vec!["/unstarted/0 INVALID_ID"]),
        (json!({"unstarted": [7]}), vec!["/unstarted/0 WRONG_TYPE"]),
        (json!({"unstarted": vec![ID; 10_001]}), vec!["/unstarted TOO_MANY"]),
        (json!({"running": []}), vec!["/running UNKNOWN_FIELD"]),
    ] {
        let wanted = errors.into_iter().map(str::to_owned).collect();
        let answer = beat(&router, ID, &body).await;
        assert_eq!(answer.problem(), (422, "INVALID_FIELDS".to_owned(), wanted), "{body:.80}");
    }
}
