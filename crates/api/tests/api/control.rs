//! Cancel, replay and retry.

use axum::Router;
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{ask, engine, get, post, request, router, router_of, router_over};

/// A task that waits, and where it is.
async fn submitted(router: &Router) -> String {
    let answer = ask(router, post("/tasks", r#"{"type":"unserved","payload":{"n":1}}"#)).await;
    assert_eq!(answer.status, 201);
    format!("/v1/tasks/{}", answer.json()["taskId"].as_str().unwrap())
}

async fn order(router: &Router, path: &str, body: &Value) -> (u16, Value) {
    let answer = ask(router, post(path, body.to_string())).await;
    (answer.status.as_u16(), answer.json())
}

#[tokio::test]
async fn a_waiting_task_is_cancelled_with_its_reason() {
    let router = router();
    let task = submitted(&router).await;
    let reason = json!({"reason": "ordered by mistake"});
    for _ in 0..2 {
        let (status, view) = order(&router, &format!("{task}/cancel"), &reason).await;
        assert_eq!((status, &view["status"]), (200, &json!("CANCELLED")));
        let error = json!({"code": "CANCELLED", "message": "ordered by mistake"});
        assert_eq!(view["error"], error);
    }
    assert_eq!(ask(&router, get(&task)).await.json()["status"], "CANCELLED");
}

#[tokio::test]
async fn a_replay_keeps_the_id_and_may_change_the_payload() {
    let router = router();
    let task = submitted(&router).await;
    let (status, problem) = order(&router, &format!("{task}/replay"), &json!({})).await;
    assert_eq!((status, &problem["code"]), (409, &json!("STATE_CONFLICT")));
    order(&router, &format!("{task}/cancel"), &json!({})).await;
    let body = json!({"payload": {"n": 2}});
    let (status, view) = order(&router, &format!("{task}/replay"), &body).await;
    assert_eq!((status, &view["status"], &view["run"]), (200, &json!("PENDING"), &json!(2)));
    assert_eq!((&view["payload"], &view["error"]), (&json!({"n": 2}), &Value::Null));
}

#[tokio::test]
async fn a_body_may_be_left_out() {
    let router = router();
    let task = submitted(&router).await;
    for (verb, status) in [("cancel", 200), ("retry", 409), ("replay", 200)] {
        let bare = request(Method::POST, &format!("{task}/{verb}"), &[]);
        assert_eq!(ask(&router, bare).await.status, status, "{verb}");
    }
}

#[tokio::test]
async fn bad_orders_are_refused_and_change_nothing() {
    let router = router();
    let task = submitted(&router).await;
    let before = ask(&router, get(&task)).await.json();
    let long = json!({"reason": "x".repeat(501)}).to_string();
    let deep = format!(r#"{{"payload":{}{}}}"#, "[".repeat(65), "]".repeat(65));
    let cases = [
        ("cancel", r#"{"why":1}"#, 422, "INVALID_FIELDS", vec!["/why UNKNOWN_FIELD"]),
        ("cancel", r#"{"reason":1}"#, 422, "INVALID_FIELDS", vec!["/reason WRONG_TYPE"]),
        ("cancel", &long, 422, "INVALID_FIELDS", vec!["/reason OUT_OF_RANGE"]),
        ("cancel", "[]", 422, "INVALID_FIELDS", vec![" WRONG_TYPE"]),
        ("cancel", "{", 400, "MALFORMED_JSON", vec![]),
        ("replay", &deep, 422, "INVALID_FIELDS", vec!["/payload TOO_DEEP"]),
        (
            "replay",
            r#"{"payload":1,"payload":2}"#,
            422,
            "INVALID_FIELDS",
            vec!["/payload DUPLICATE_FIELD"],
        ),
        ("retry", r#"{"now":true}"#, 422, "INVALID_FIELDS", vec!["/now UNKNOWN_FIELD"]),
    ];
    for (verb, body, status, code, errors) in cases {
        let answer = ask(&router, post(&format!("{task}/{verb}"), body.to_owned())).await;
        let errors = errors.into_iter().map(str::to_owned).collect();
        assert_eq!(answer.problem(), (status, code.to_owned(), errors), "{verb} {body}");
    }
    for verb in ["cancel", "replay", "retry"] {
        for id in ["x", "01920000-0000-7000-8000-000000000000"] {
            let answer = ask(&router, post(&format!("/tasks/{id}/{verb}"), "{}")).await;
            assert_eq!(answer.problem().1, "TASK_NOT_FOUND");
        }
    }
    assert_eq!(ask(&router, get(&task)).await.json(), before);
}

async fn patch(router: &Router, path: &str, body: &str) -> crate::support::Answer {
    let mut request = post(path, body.to_owned());
    *request.method_mut() = Method::PATCH;
    ask(router, request).await
}

#[tokio::test]
async fn a_waiting_task_is_changed_field_by_field() {
    let router = router();
    let task = submitted(&router).await;
    let before = ask(&router, get(&task)).await.json();
    let change = json!({"payload": [1], "priority": 9, "retries": 7, "labels": {"customer": "42"},
        "runAt": "2999-01-01T00:00:00Z"});
    let refused = patch(&router, &task, &change.to_string()).await;
    assert_eq!(refused.problem().2, ["/runAt OUT_OF_RANGE"], "more than 400 days ahead");
    assert_eq!(ask(&router, get(&task)).await.json(), before);
    let mut change = change;
    change["runAt"] = before["runAt"].clone();
    let changed = patch(&router, &task, &change.to_string()).await;
    assert_eq!(changed.status, 200);
    let mut view = changed.json();
    for (field, value) in change.as_object().unwrap() {
        if field != "runAt" {
            assert_eq!(&view[field], value, "{field}");
            view[field] = before[field].clone();
        }
    }
    view["runAt"] = before["runAt"].clone();
    assert_eq!(view, before, "nothing else has changed");
}

#[tokio::test]
async fn what_cannot_be_changed_is_refused() {
    let router = router();
    let task = submitted(&router).await;
    for (body, status, code) in [
        (r#"{"type":"other"}"#, 422, "UNSUPPORTED_FIELD"),
        (r#"{"queue":"other"}"#, 422, "UNSUPPORTED_FIELD"),
        (r#"{"priority":10}"#, 422, "INVALID_FIELDS"),
        (r#"{"timeoutSeconds":0}"#, 422, "INVALID_FIELDS"),
        (r#"{"status":"SUCCESS"}"#, 422, "INVALID_FIELDS"),
        ("[]", 422, "INVALID_FIELDS"),
        ("{", 400, "MALFORMED_JSON"),
        ("", 400, "MALFORMED_JSON"),
    ] {
        let (found, named, _) = patch(&router, &task, body).await.problem();
        assert_eq!((found, named.as_str()), (status, code), "{body}");
    }
    order(&router, &format!("{task}/cancel"), &json!({})).await;
    let (status, code, _) = patch(&router, &task, r#"{"priority":1}"#).await.problem();
    assert_eq!((status, code.as_str()), (409, "STATE_CONFLICT"));
    let missing = "/tasks/01920000-0000-7000-8000-000000000000";
    let (status, code, _) = patch(&router, missing, r#"{"priority":1}"#).await.problem();
    assert_eq!((status, code.as_str()), (404, "TASK_NOT_FOUND"));
}

#[tokio::test]
async fn only_an_ended_task_can_be_deleted() {
    let engine = engine();
    let (router, other) = (router_over(&engine), router_of(&engine, "other"));
    let body = r#"{"type":"a","delaySeconds":60,"idempotencyKey":"k"}"#;
    let task = ask(&router, post("/tasks", body)).await.json();
    let id = task["taskId"].as_str().unwrap();
    let delete = |id: &str| request(Method::DELETE, &format!("/v1/tasks/{id}"), &[]);
    let waiting = ask(&router, delete(id)).await;
    assert_eq!(waiting.problem().1, "STATE_CONFLICT");
    assert!(waiting.json()["detail"].as_str().unwrap().contains("cancel it first"));
    ask(&router, post(&format!("/tasks/{id}/cancel"), "")).await;
    assert_eq!(ask(&other, delete(id)).await.problem().1, "TASK_NOT_FOUND");
    assert_eq!(ask(&router, delete(&id[..13])).await.status, 204);
    assert_eq!(ask(&router, get(&format!("/tasks/{id}"))).await.status, 404);
    assert_eq!(ask(&router, delete(id)).await.problem().1, "TASK_NOT_FOUND");
    let again = ask(&router, post("/tasks", body)).await;
    assert_eq!(again.status, 201, "its key is forgotten too");
    let bulk =
        ask(&router, post("/bulk-actions", r#"{"action":"cancel","all":true}"#)).await.json();
    let bulk = bulk["bulkId"].as_str().unwrap();
    ask(&router, get(&format!("/bulk-actions/{bulk}?wait=30s"))).await;
    assert_eq!(ask(&router, delete(bulk)).await.problem().1, "STATE_CONFLICT");
}
