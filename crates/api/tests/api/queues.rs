//! Queues: look at them, pause them; and why a task does not run.

use axum::Router;
use duly_core::lease::Outcome;
use duly_core::task::Failure;
use serde_json::{Value, json};

use crate::support::{Hand, ask, engine, get, post, router, router_of, router_over};

async fn submit(router: &Router, body: &Value) -> String {
    let answer = ask(router, post("/tasks", body.to_string())).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["taskId"].as_str().unwrap().to_owned()
}

async fn read(router: &Router, path: &str) -> Value {
    let answer = ask(router, get(path)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn reasons(router: &Router, id: &str) -> (Vec<String>, Value) {
    let explained = read(router, &format!("/v1/tasks/{id}/explain")).await;
    assert_eq!(explained["taskId"], *id);
    let codes = explained["reasons"].as_array().unwrap().iter();
    (codes.map(|reason| reason["code"].as_str().unwrap().to_owned()).collect(), explained)
}

#[tokio::test]
async fn queues_are_listed_with_what_is_in_them() {
    let engine = engine();
    let router = router_over(&engine);
    for queue in ["mail", "billing", "video"] {
        submit(&router, &json!({"type": "a", "queue": queue})).await;
    }
    submit(&router, &json!({"type": "b", "queue": "mail", "delaySeconds": 60})).await;
    let first = read(&router, "/v1/queues?limit=2").await;
    let names: Vec<_> = first["items"].as_array().unwrap().iter().map(|it| &it["queue"]).collect();
    assert_eq!(names, ["billing", "mail"]);
    let mail = &first["items"][1];
    assert_eq!(mail["waiting"], json!({"count": 2, "more": false}));
    assert_eq!(mail["due"], json!({"count": 1, "more": false}));
    assert_eq!((&mail["paused"], &mail["running"]["count"]), (&Value::Null, &json!(0)));
    assert!(mail["oldestDueAt"].is_string());
    assert!(mail["submittedPerSecond"].as_f64().unwrap() > 0.0);
    assert_eq!(*mail, read(&router, "/queues/mail/stats").await);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = read(&router, &format!("/v1/queues?limit=2&cursor={cursor}")).await;
    assert_eq!(second["items"][0]["queue"], "video");
    assert!(second["nextCursor"].is_null());
}

#[tokio::test]
async fn a_paused_queue_starts_nothing_until_it_is_resumed() {
    let engine = engine();
    let router = router_over(&engine);
    let id = submit(&router, &json!({"type": "a", "queue": "mail"})).await;
    let body = r#"{"note":"the relay is down"}"#;
    let paused = ask(&router, post("/queues/mail/pause", body)).await;
    assert_eq!(
        (paused.status.as_u16(), &paused.json()["paused"]["note"]),
        (200, &json!("the relay is down"))
    );
    let worker = Hand::of(&engine, &["a"]).await;
    let other = submit(&router, &json!({"type": "a", "queue": "other"})).await;
    let success = || Outcome::Success { result: None };
    assert_eq!(worker.end(success(), None).await, other, "the paused one waits");
    let (codes, explained) = reasons(&router, &id).await;
    assert_eq!(codes, ["QUEUE_PAUSED"]);
    assert_eq!(explained["reasons"][0]["paused"]["note"], "the relay is down");
    assert_eq!(explained["next"], json!(["duly queue resume mail"]));
    let resumed = ask(&router, post("/queues/mail/resume", "")).await;
    assert_eq!((resumed.status.as_u16(), &resumed.json()["paused"]), (200, &Value::Null));
    assert_eq!(worker.end(success(), None).await, id);
    assert_eq!(reasons(&router, &id).await.0, ["ENDED"]);
}

#[tokio::test]
async fn every_reason_is_told() {
    let engine = engine();
    let router = router_over(&engine);
    let later = submit(&router, &json!({"type": "a", "delaySeconds": 60})).await;
    let (codes, explained) = reasons(&router, &later).await;
    assert_eq!(codes, ["NOT_DUE", "NO_WORKER"]);
    assert!(explained["reasons"][0]["until"].is_string());
    let first = submit(&router, &json!({"type": "a"})).await;
    let second = submit(&router, &json!({"type": "a"})).await;
    assert_eq!(reasons(&router, &first).await.0, ["NO_WORKER"]);
    let (codes, explained) = reasons(&router, &second).await;
    assert_eq!(codes, ["NO_WORKER", "BEHIND_OTHERS"]);
    assert_eq!(explained["reasons"][1]["ahead"], json!({"count": 1, "more": false}));
    let worker = Hand::of(&engine, &["a"]).await;
    assert_eq!(reasons(&router, &first).await.0, ["NEXT"]);
    let error = Failure::new("BROKEN", "it broke");
    let after = Some(std::time::Duration::from_secs(60));
    let failed = worker.end(Outcome::Retry { error, entropy: 0, after }, None).await;
    assert_eq!(failed, first);
    let (codes, explained) = reasons(&router, &first).await;
    assert_eq!(codes, ["WAITING_FOR_RETRY"]);
    assert_eq!(explained["next"], json!([format!("duly task retry {first}")]));
}

#[tokio::test]
async fn what_is_not_there_cannot_be_looked_at() {
    let engine = engine();
    let router = router_over(&engine);
    let other = router_of(&engine, "other");
    let id = submit(&router, &json!({"type": "a", "queue": "mail"})).await;
    for asked in [
        get("/queues/mail/stats"),
        get("/queues/NO-QUEUE/stats"),
        get("/queues/%ff/stats"),
        post("/queues/%ff/pause", ""),
        post("/queues/mail/resume", ""),
    ] {
        let (status, code, _) = ask(&other, asked).await.problem();
        assert_eq!((status, code.as_str()), (404, "QUEUE_NOT_FOUND"));
    }
    let (status, code, _) = ask(&other, get(&format!("/tasks/{id}/explain"))).await.problem();
    assert_eq!((status, code.as_str()), (404, "TASK_NOT_FOUND"));
    assert_eq!(read(&other, "/queues").await["items"], json!([]));
}

#[tokio::test]
async fn bad_orders_are_refused() {
    let router = router();
    submit(&router, &json!({"type": "a", "queue": "mail"})).await;
    for (path, body, code, fields) in [
        ("pause", "{", "MALFORMED_JSON", vec![]),
        ("pause", r#"{"note":1}"#, "INVALID_FIELDS", vec!["/note WRONG_TYPE"]),
        ("pause", r#"{"why":""}"#, "INVALID_FIELDS", vec!["/why UNKNOWN_FIELD"]),
        (
            "pause",
            &json!({"note": "x".repeat(501)}).to_string(),
            "INVALID_FIELDS",
            vec!["/note OUT_OF_RANGE"],
        ),
        ("resume", r#"{"note":"x"}"#, "INVALID_FIELDS", vec!["/note UNKNOWN_FIELD"]),
    ] {
        let answer = ask(&router, post(&format!("/queues/mail/{path}"), body.to_owned())).await;
        let (_, found, errors) = answer.problem();
        assert_eq!(
            (found.as_str(), errors),
            (code, fields.iter().map(ToString::to_string).collect())
        );
    }
    for path in
        ["/queues?limit=0", "/queues?cursor=x", "/queues?filter=a", "/queues/mail/stats?x=1"]
    {
        let (status, ..) = ask(&router, get(path)).await.problem();
        assert_eq!(status, 400, "{path}");
    }
}

/// Bulk actions would stop, also those of the operator who has paused it.
#[tokio::test]
async fn a_queue_of_the_system_cannot_be_paused() {
    let router = router();
    for queue in ["duly.system", "Duly.Other"] {
        let refused = ask(&router, post(&format!("/queues/{queue}/pause"), "")).await.problem();
        assert_eq!((refused.0, refused.1.as_str()), (409, "SYSTEM_QUEUE"), "{queue}");
    }
    let order = r#"{"action":"cancel","all":true}"#;
    let id = ask(&router, post("/bulk-actions", order)).await.json()["bulkId"].take();
    let ended = format!("/bulk-actions/{}?wait=30s", id.as_str().unwrap());
    assert_eq!(read(&router, &ended).await["status"], "SUCCESS");
}

#[tokio::test]
async fn a_queue_can_be_paused_before_its_first_task() {
    let engine = engine();
    let router = router_over(&engine);
    let paused = ask(&router, post("/queues/New-Queue/pause", r#"{"note":"not yet"}"#)).await;
    assert_eq!((paused.status.as_u16(), &paused.json()["queue"]), (200, &json!("New-Queue")));
    assert_eq!(read(&router, "/queues").await["items"][0]["paused"]["note"], "not yet");
    let worker = Hand::of(&engine, &["a"]).await;
    let id = submit(&router, &json!({"type": "a", "queue": "New-Queue"})).await;
    assert_eq!(reasons(&router, &id).await.0, ["QUEUE_PAUSED"]);
    assert_eq!(ask(&router, post("/queues/New-Queue/resume", "")).await.status, 200);
    assert_eq!(worker.end(Outcome::Success { result: None }, None).await, id);
    assert_eq!(ask(&router, post("/queues/empty/pause", "")).await.status, 200);
    let resumed = ask(&router, post("/queues/empty/resume", "")).await;
    assert_eq!((resumed.status.as_u16(), &resumed.json()["paused"]), (200, &Value::Null));
    assert_eq!(ask(&router, get("/queues/empty/stats")).await.status, 404);
}
