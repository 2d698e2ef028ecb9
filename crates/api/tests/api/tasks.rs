//! Submit one task, read it, wait for it.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use duly_core::lease::{Finish, Outcome};
use duly_core::name::TypeName;
use duly_engine::Engine;
use duly_engine::engine::LocalWorker;
use serde_json::{Value, json};

use crate::support::{Answer, Hand, ask, engine, get, post, request, router, router_over};

fn keyed(key: &str, body: &'static str) -> Request<Body> {
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    request(Method::POST, "/tasks", &headers).map(|_| Body::from(body))
}

async fn submit(router: &Router, body: impl Into<Body>) -> Answer {
    let answer = ask(router, post("/tasks", body)).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer
}

#[tokio::test]
async fn the_documented_body_makes_a_task() {
    let router = router();
    let body = r#"{"type":"email","payload":{},"delaySeconds":60,"retries":3,"dependencies":[]}"#;
    let answer = submit(&router, body).await;
    let task = answer.json();
    let id = task["taskId"].as_str().unwrap();
    assert_eq!(answer.headers["location"], format!("/v1/tasks/{id}"));
    assert!(!answer.headers.contains_key("idempotency-replayed"));
    let expected = json!({
        "taskId": id, "type": "email", "queue": "default", "status": "PENDING", "priority": 5,
        "runAt": task["runAt"], "createdAt": task["createdAt"], "leasedAt": null,
        "startedAt": null,
        "finishedAt": null, "run": 1, "attempt": 0, "retries": 3,
        "backoff": {
            "strategy": "exponential", "baseSeconds": 1.0, "factor": 2.0, "capSeconds": 3600.0,
            "jitter": "full"
        },
        "timeoutSeconds": null, "epoch": 0, "losses": 0,
        "worker": null, "payload": {}, "result": null, "error": null, "labels": {},
        "progress": null,
        "dependencies": [], "workflowId": null, "workflowKey": null, "render": false, "scheduleId": null, "schedule": null, "warnings": task["warnings"],
    });
    assert_eq!(task, expected);
    assert_eq!(task["warnings"][0]["code"], "NO_WORKER_FOR_TYPE");
    for path in [format!("/v1/tasks/{id}"), format!("/tasks/{id}")] {
        let read = ask(&router, get(&path)).await;
        assert_eq!(read.status, 200);
        let mut read = read.json();
        read["warnings"] = task["warnings"].clone();
        assert_eq!(read, task);
    }
}

#[tokio::test]
async fn what_was_sent_comes_back_byte_for_byte() {
    let router = router();
    let payload = r#"{"z": 123456789012345678901234567890, "a":1.0E+2,"s":"'; drop table --"}"#;
    let labels = r#"{"it's":"\"quoted\"\u2028"}"#;
    let body = format!(r#"{{"type":"a","payload":{payload},"labels":{labels}}}"#);
    let answer = submit(&router, body).await;
    let id = answer.json()["taskId"].as_str().unwrap().to_owned();
    for answer in [answer, ask(&router, get(&format!("/tasks/{id}"))).await] {
        let text = String::from_utf8(answer.body.clone()).unwrap();
        assert!(text.contains(payload), "{text}");
        assert_eq!(answer.json()["labels"], serde_json::from_str::<Value>(labels).unwrap());
    }
}

#[tokio::test]
async fn a_repeated_submit_answers_with_the_first_task() {
    let router = router();
    let first = ask(&router, keyed("k-1", r#"{"type":"a","payload":{"x":1,"y":2}}"#)).await;
    assert_eq!(first.status, 201);
    for again in [
        keyed("k-1", r#"{ "payload": {"y":2, "x":1}, "type":"a" }"#),
        keyed("\"k-1\"", r#"{"type":"a","payload":{"x":1,"y":2},"retries":3}"#),
        post("/v1/tasks", r#"{"type":"a","payload":{"x":1,"y":2},"idempotencyKey":"k-1"}"#),
    ] {
        let answer = ask(&router, again).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.headers["idempotency-replayed"], "true");
        assert_eq!(answer.json()["taskId"], first.json()["taskId"]);
    }
    let (status, code, _) = ask(&router, keyed("k-1", r#"{"type":"b"}"#)).await.problem();
    assert_eq!((status, code.as_str()), (422, "IDEMPOTENCY_KEY_REUSED"));
    let other = ask(&router, keyed("k-2", r#"{"type":"b"}"#)).await;
    assert_eq!(other.status, 201);
}

#[tokio::test]
async fn a_task_too_far_ahead_is_refused() {
    let body = r#"{"type":"a","runAt":"2999-01-01T00:00:00Z"}"#;
    let problem = ask(&router(), post("/tasks", body)).await.problem();
    let errors = vec!["/runAt OUT_OF_RANGE".to_owned()];
    assert_eq!(problem, (422, "INVALID_FIELDS".to_owned(), errors));
}

#[tokio::test]
async fn a_task_that_is_not_there() {
    let random = "/tasks/01920000-0000-7000-8000-000000000000";
    for path in [random.to_owned(), format!("{random}?wait=30s")] {
        let (status, code, _) = ask(&router(), get(&path)).await.problem();
        assert_eq!((status, code.as_str()), (404, "TASK_NOT_FOUND"));
    }
}

/// A worker that succeeds with one task.
async fn work_once(engine: &Engine) {
    let types = vec![TypeName::new("a").unwrap()];
    let worker = LocalWorker { name: "w".to_owned(), types, queues: Vec::new() };
    let source = engine.open_worker(worker).await.unwrap();
    let leases = source.claim(1).await.unwrap();
    let outcome = Outcome::Success { result: Some(r#"{"n":1.50}"#.into()) };
    let ran = Some(std::time::Duration::ZERO);
    let finish = Finish { ran, ..Finish::new(leases[0].task, leases[0].epoch, outcome) };
    source.finish(vec![finish]).await.unwrap();
}

#[tokio::test]
async fn waiting_ends_with_the_outcome() {
    let engine = engine();
    let router = router_over(&engine);
    let task = submit(&router, r#"{"type":"a"}"#).await.json();
    let path = format!("/tasks/{}?wait=PT30S", task["taskId"].as_str().unwrap());
    let (answer, ()) = tokio::join!(ask(&router, get(&path)), work_once(&engine));
    let ended = answer.json();
    assert_eq!((&ended["status"], &ended["attempt"]), (&json!("SUCCESS"), &json!(1)));
    assert_eq!((&ended["worker"], &ended["epoch"]), (&json!("w"), &json!(1)));
    assert!(ended["finishedAt"].is_string() && ended["leasedAt"].is_string());
    assert_eq!(ended["startedAt"], ended["finishedAt"], "its handler took no time");
    let text = String::from_utf8(answer.body).unwrap();
    assert!(text.contains(r#""result":{"n":1.50}"#), "{text}");
}

#[tokio::test]
async fn a_type_that_is_served_brings_no_warning() {
    let engine = engine();
    let types = vec![TypeName::new("a").unwrap()];
    let worker = LocalWorker { name: "w".to_owned(), types, queues: Vec::new() };
    let _source = engine.open_worker(worker).await.unwrap();
    let task = submit(&router_over(&engine), r#"{"type":"a"}"#).await.json();
    assert_eq!(task["warnings"], json!([]));
}

#[tokio::test]
async fn waiting_ends_with_time_or_with_the_server() {
    let engine = engine();
    let router = router_over(&engine);
    let task = submit(&router, r#"{"type":"a"}"#).await.json();
    let path = |wait: &str| format!("/tasks/{}?wait={wait}", task["taskId"].as_str().unwrap());
    assert_eq!(ask(&router, get(&path("0s"))).await.json()["status"], "PENDING");
    assert_eq!(ask(&router, get(&path("20ms"))).await.json()["status"], "PENDING");
    let long = path("60s");
    let long = ask(&router, get(&long));
    let closing = async { engine.begin_close() };
    let both = async { tokio::join!(long, closing) };
    let (answer, ()) = tokio::time::timeout(Duration::from_secs(10), both).await.unwrap();
    assert_eq!(answer.json()["status"], "PENDING");
}

#[tokio::test]
async fn a_submit_can_wait_for_its_outcome() {
    let engine = engine();
    let router = router_over(&engine);
    let worker = Hand::of(&engine, &["a"]).await;
    let submitted = post("/tasks?wait=30s", r#"{"type":"a"}"#);
    let success = Outcome::Success { result: Some(r#"{"n":1}"#.into()) };
    let (answer, id) = tokio::join!(ask(&router, submitted), worker.end(success, None));
    let task = answer.json();
    assert_eq!((answer.status.as_u16(), &task["taskId"]), (201, &json!(id)));
    assert_eq!((&task["status"], &task["result"]["n"]), (&json!("SUCCESS"), &json!(1)));
    assert_eq!(task["warnings"], json!([]));
    assert_eq!(answer.headers["location"], format!("/v1/tasks/{id}"));
}

#[tokio::test]
async fn a_submit_that_waited_in_vain_answers_with_the_task_as_it_is() {
    let router = router();
    for wait in ["0s", "50ms"] {
        let answer = ask(&router, post(&format!("/v1/tasks?wait={wait}"), r#"{"type":"a"}"#)).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["status"]), (201, &json!("PENDING")));
        assert_eq!(answer.json()["warnings"][0]["code"], "NO_WORKER_FOR_TYPE");
    }
    for bad in ["61s", "5", "", "-1s", "1s&wait=1s"] {
        let answer = ask(&router, post(&format!("/tasks?wait={bad}"), r#"{"type":"b"}"#)).await;
        assert_eq!(answer.problem().1, "INVALID_PARAMETER", "{bad}");
    }
    let none = ask(&router, get("/tasks?filter=type:b")).await.json();
    assert_eq!(none["items"], json!([]), "a refused submit stores nothing");
}

#[tokio::test]
async fn a_repeated_submit_waits_for_the_first_ones_task() {
    let engine = engine();
    let router = router_over(&engine);
    let first = ask(&router, keyed("k", r#"{"type":"a"}"#)).await.json();
    let worker = Hand::of(&engine, &["a"]).await;
    let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
    let again = request(Method::POST, "/tasks?wait=30s", &headers);
    let again = again.map(|_| Body::from(r#"{"type":"a"}"#));
    let (answer, _) =
        tokio::join!(ask(&router, again), worker.end(Outcome::Success { result: None }, None));
    assert_eq!((answer.status.as_u16(), &answer.json()["taskId"]), (200, &first["taskId"]));
    assert_eq!(answer.json()["status"], "SUCCESS");
}

#[tokio::test]
async fn tasks_keep_the_trace_that_they_come_from() {
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let router = router();
    let send = async |path: &str, trace: &str, body: &'static str| {
        let headers = [("content-type", "application/json"), ("traceparent", trace)];
        ask(&router, request(Method::POST, path, &headers).map(|_| Body::from(body))).await
    };
    let labels = async |id: &Value| {
        let path = format!("/tasks/{}", id.as_str().unwrap());
        ask(&router, get(&path)).await.json()["labels"].clone()
    };
    let body = r#"{"type":"a","labels":{"x":"y"},"idempotencyKey":"k"}"#;
    let task = send("/tasks", TRACE, body).await.json();
    let expected = json!({ "duly.traceparent": TRACE, "x": "y" });
    assert_eq!(labels(&task["taskId"]).await, expected);
    let other = TRACE.replace("-01", "-00");
    let again = send("/tasks", &other, body).await;
    assert_eq!(
        (again.status.as_u16(), again.json()["taskId"].clone()),
        (200, task["taskId"].clone())
    );
    let batch = send("/tasks/batch", TRACE, r#"[{"type":"a"}]"#).await.json();
    assert_eq!(labels(&batch["items"][0]["taskId"]).await, json!({ "duly.traceparent": TRACE }));
    let flow = r#"{"name":"w","tasks":{"one":{"type":"a"}}}"#;
    assert_eq!(send("/workflows", TRACE, flow).await.status, 201);
    let member = ask(&router, get("/tasks?filter=label.duly.traceparent:*&limit=1")).await.json();
    assert_eq!(member["items"], json!([]), "a value, not a pattern");
    let found = format!("/tasks?filter=label.duly.traceparent:{TRACE}");
    assert_eq!(ask(&router, get(&found)).await.json()["items"].as_array().unwrap().len(), 3);
    for bad in ["", "01", "00-xyz", &TRACE.to_uppercase()] {
        let task = send("/tasks", bad, r#"{"type":"a"}"#).await;
        assert_eq!(
            (task.status.as_u16(), task.json()["labels"].clone()),
            (201, json!({})),
            "{bad}"
        );
    }
}
