//! Tenants: quotas, suspension, and what their callers are told.

use axum::Router;
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, ask, engine, get, post, request, router, router_of, router_over};

async fn put(router: &Router, headers: &[(&str, &str)], body: &Value) -> Answer {
    let mut all = vec![("content-type", "application/json")];
    all.extend_from_slice(headers);
    let asked = request(Method::PUT, "/v1/tenants/acme", &all);
    ask(router, asked.map(|_| body.to_string().into())).await
}

async fn limited(quotas: &Value) -> (Router, Router) {
    let engine = engine();
    let admin = router_over(&engine);
    assert_eq!(put(&admin, &[], &json!({"quotas": quotas})).await.status, 201);
    (admin, router_of(&engine, "acme"))
}

async fn submit(router: &Router) -> Answer {
    ask(router, post("/tasks", r#"{"type":"echo"}"#)).await
}

fn retry_after(answer: &Answer) -> u32 {
    answer.headers["retry-after"].to_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_record_is_created_read_and_replaced() {
    let router = router();
    let absent = ask(&router, get("/tenants/acme")).await.problem();
    assert_eq!((absent.0, absent.1.as_str()), (404, "TENANT_NOT_FOUND"));
    let body = json!({"note": "trial", "quotas": {"waitingTasks": 10},
        "settings": {"retries": 5, "backoff": {"strategy": "fixed"}, "redact": ["/card"],
            "retention": {"successSeconds": 86_400.5, "failedSeconds": null}}});
    let created = put(&router, &[("if-none-match", "*")], &body).await;
    assert_eq!(
        (created.status.as_u16(), &created.headers["etag"]),
        (201, &"\"1\"".parse().unwrap())
    );
    let view = created.json();
    assert_eq!(view["quotas"]["waitingTasks"], 10);
    assert_eq!(view["quotas"]["schedules"], Value::Null);
    assert_eq!(view["settings"]["backoff"]["strategy"], "fixed");
    let retention = json!({"successSeconds": 86_400.5, "failedSeconds": null});
    assert_eq!(view["settings"]["retention"], retention, "the third is as in the installation");
    assert_eq!((&view["suspendedAt"], &view["note"]), (&Value::Null, &json!("trial")));
    assert_eq!(ask(&router, get("/v1/tenants/acme")).await.json(), view);
    let list = ask(&router, get("/tenants")).await.json();
    assert_eq!(list, json!({"items": [view], "nextCursor": null}));

    let replaced = put(&router, &[("if-match", "\"1\"")], &json!({})).await;
    assert_eq!(replaced.status, 200);
    assert_eq!(replaced.json()["quotas"]["waitingTasks"], Value::Null, "what is absent is gone");
    assert_eq!(replaced.json()["settings"]["retention"], Value::Null);
    for stale in [("if-match", "\"1\""), ("if-none-match", "*")] {
        let refused = put(&router, &[stale], &body).await.problem();
        assert_eq!((refused.0, refused.1.as_str()), (412, "VERSION_MISMATCH"), "{stale:?}");
    }
}

#[tokio::test]
async fn a_name_that_can_be_none_is_not_found() {
    let router = router();
    for name in ["Acme", "duly.system", "*"] {
        let headers = [("content-type", "application/json")];
        let asked = request(Method::PUT, &format!("/tenants/{name}"), &headers);
        let refused = ask(&router, asked.map(|_| "{}".into())).await.problem();
        assert_eq!((refused.0, refused.1.as_str()), (404, "TENANT_NOT_FOUND"), "{name}");
    }
}

#[tokio::test]
async fn a_suspended_tenant_is_told_so() {
    let engine = engine();
    let (admin, acme) = (router_over(&engine), router_of(&engine, "acme"));
    let resume = ask(&admin, post("/tenants/acme/resume", "{}")).await.problem();
    assert_eq!(resume.1, "TENANT_NOT_FOUND");
    let suspended = ask(&admin, post("/tenants/acme/suspend", r#"{"note":"unpaid"}"#)).await;
    assert_eq!(suspended.status, 200);
    assert!(suspended.json()["suspendedAt"].is_string());
    let schedule = r#"{"every":"1h","task":{"type":"echo"}}"#;
    let headers = [("content-type", "application/json")];
    let schedule = request(Method::PUT, "/schedules/nightly", &headers).map(|_| schedule.into());
    assert_eq!(ask(&acme, schedule).await.status, 201, "a schedule rests, and may be changed");
    for (path, body) in [
        ("/tasks", r#"{"type":"echo"}"#),
        ("/tasks/batch", r#"[{"type":"echo"}]"#),
        ("/workflows", r#"{"name":"w","tasks":{"a":{"type":"echo"}}}"#),
        ("/schedules/nightly/trigger", "{}"),
        ("/bulk-actions", r#"{"action":"cancel","all":true}"#),
    ] {
        let (status, code, _) = ask(&acme, post(path, body)).await.problem();
        assert_eq!((status, code.as_str()), (403, "TENANT_SUSPENDED"), "{path}");
    }
    assert_eq!(submit(&admin).await.status, 201, "others go on");
    let resumed = ask(&admin, post("/tenants/acme/resume", "")).await;
    assert_eq!((resumed.status.as_u16(), &resumed.json()["suspendedAt"]), (200, &Value::Null));
    assert_eq!(resumed.json()["note"], "unpaid");
    assert_eq!(submit(&acme).await.status, 201);
}

#[tokio::test]
async fn s21_quotas_are_named_where_they_are_used_up() {
    let (_, acme) = limited(&json!({"waitingTasks": 1, "schedules": 1, "workflows": 0})).await;
    assert_eq!(submit(&acme).await.status, 201);
    let refused = submit(&acme).await;
    let problem: Value = refused.json();
    assert_eq!(refused.status, 429);
    assert_eq!(problem["code"], "QUOTA_EXCEEDED");
    assert!(problem["detail"].as_str().unwrap().contains("`waitingTasks` of tenant acme is 1"));
    assert!(retry_after(&refused) >= 1);
    let batch = ask(&acme, post("/tasks/batch", r#"[{"type":"echo"},{"type":"echo"}]"#)).await;
    assert_eq!(batch.problem().1, "QUOTA_EXCEEDED");

    let workflow = r#"{"name":"w","tasks":{"a":{"type":"echo"}}}"#;
    let refused = ask(&acme, post("/workflows", workflow)).await;
    assert_eq!((refused.problem().0, refused.problem().1.as_str()), (422, "TENANT_LIMIT"));
    let schedule = async |name: &str| {
        let headers = [("content-type", "application/json")];
        let asked = request(Method::PUT, &format!("/schedules/{name}"), &headers);
        let body = r#"{"every":"1h","task":{"type":"echo"}}"#;
        ask(&acme, asked.map(|_| body.into())).await
    };
    assert_eq!(schedule("one").await.status, 201);
    assert_eq!(schedule("one").await.status, 200, "one that is there may be replaced");
    let refused = schedule("two").await;
    assert_eq!((refused.problem().0, refused.problem().1.as_str()), (422, "TENANT_LIMIT"));
}

#[tokio::test]
async fn s20_submits_beyond_the_rate_are_told_when_to_come_back() {
    let (_, acme) = limited(&json!({"submitsPerSecond": 2})).await;
    let batch = r#"[{"type":"echo"},{"type":"echo"},{"type":"echo"},{"type":"echo"}]"#;
    assert_eq!(ask(&acme, post("/tasks/batch", batch)).await.status, 201);
    let refused = submit(&acme).await;
    assert_eq!((refused.status.as_u16(), refused.problem().1.as_str()), (429, "QUOTA_EXCEEDED"));
    assert_eq!(retry_after(&refused), 2);
}

#[tokio::test]
async fn a_large_payload_is_a_field_that_is_wrong() {
    let (_, acme) = limited(&json!({"payloadBytes": 4})).await;
    let fits = ask(&acme, post("/tasks", r#"{"type":"echo","payload":1234}"#)).await;
    assert_eq!(fits.status, 201);
    let refused = ask(&acme, post("/tasks", r#"{"type":"echo","payload":12345}"#)).await.problem();
    assert_eq!((refused.0, refused.2), (422, vec!["/payload QUOTA_EXCEEDED".to_owned()]));
    let batch = r#"[{"type":"echo","payload":1},{"type":"echo","payload":12345}]"#;
    let batch = ask(&acme, post("/tasks/batch", batch)).await;
    assert_eq!(batch.status, 207);
    assert_eq!(batch.json()["items"][1]["problem"]["status"], 422);
    let workflow = r#"{"name":"w","tasks":{"a":{"type":"echo","payload":12345}}}"#;
    let refused = ask(&acme, post("/workflows", workflow)).await.problem();
    assert_eq!((refused.0, refused.2), (422, vec!["/tasks/a/payload QUOTA_EXCEEDED".to_owned()]));
}
