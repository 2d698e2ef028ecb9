//! What is masked in payloads, and what may not be written back.

use axum::Router;
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Hand, ask, engine, get, post, request, router_of, router_over};

const CANARY: &str = "4111-canary";

async fn put(router: &Router, path: &str, body: &Value) -> Answer {
    let headers = [("content-type", "application/json"), ("if-match", "*")];
    let headers = if path == "/settings" { &headers[..] } else { &headers[..1] };
    ask(router, request(Method::PUT, path, headers).map(|_| body.to_string().into())).await
}

async fn redact(router: &Router, paths: &[&str]) {
    let answer = put(router, "/settings", &json!({"redact": paths})).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["settings"]["redact"]),
        (200, &json!(paths))
    );
}

fn task() -> Value {
    json!({"type": "echo", "payload": {"card": {"number": CANARY, "owner": "ada"}}})
}

fn shows_nothing(answer: &Answer) {
    assert!(answer.status.is_success(), "{answer:?}");
    let text = String::from_utf8(answer.body.clone()).unwrap();
    assert!(!text.contains(CANARY), "{text}");
    assert!(text.contains("***") && text.contains("ada"), "{text}");
}

#[tokio::test]
async fn s10_a_masked_part_is_shown_to_the_worker_alone() {
    let engine = engine();
    let router = router_over(&engine);
    redact(&router, &["/card/number"]).await;
    let submitted = ask(&router, post("/tasks", task().to_string())).await;
    shows_nothing(&submitted);
    let id = submitted.json()["taskId"].as_str().unwrap().to_owned();
    let schedule =
        put(&router, "/schedules/nightly", &json!({"every": "1h", "task": task()})).await;
    shows_nothing(&schedule);
    for path in [format!("/tasks/{id}"), "/tasks".to_owned(), "/schedules".to_owned()] {
        shows_nothing(&ask(&router, get(&path)).await);
    }
    shows_nothing(&ask(&router, get("/schedules/nightly")).await);
    let weekly = json!({"every": "1h", "workflow": {"tasks": {"a": task()}}});
    shows_nothing(&put(&router, "/schedules/weekly", &weekly).await);
    let priority =
        request(Method::PATCH, &format!("/tasks/{id}"), &[("content-type", "application/json")]);
    shows_nothing(&ask(&router, priority.map(|_| r#"{"priority":9}"#.into())).await);

    let session = ask(&router, post("/sessions", r#"{"types":["echo"]}"#)).await.json();
    let claim = json!({"sessionId": session["sessionId"], "seq": 1, "max": 1});
    let leases = ask(&router, post("/leases", claim.to_string())).await;
    assert!(String::from_utf8(leases.body).unwrap().contains(CANARY), "a worker needs it");
    shows_nothing(&ask(&router, post(&format!("/tasks/{id}/cancel"), "{}")).await);
    shows_nothing(&ask(&router, post(&format!("/tasks/{id}/replay"), "{}")).await);
    drop(Hand::of(&engine, &["other"]).await);
}

#[tokio::test]
async fn s10_a_mask_is_not_stored() {
    let router = router_over(&engine());
    redact(&router, &["/card/number"]).await;
    let id = ask(&router, post("/tasks", task().to_string())).await.json()["taskId"].clone();
    let id = id.as_str().unwrap();
    let masked = json!({"card": {"number": "***", "owner": "ada"}});
    let task = json!({"type": "echo", "payload": masked});
    let headers = [("content-type", "application/json")];
    let edit = request(Method::PATCH, &format!("/tasks/{id}"), &headers);
    let edit = edit.map(|_| json!({"payload": masked}).to_string().into());
    let workflow = json!({"name": "w", "tasks": {"a": task}});
    for (answer, pointer) in [
        (ask(&router, post("/tasks", task.to_string())).await, "/payload"),
        (ask(&router, edit).await, "/payload"),
        (ask(&router, post("/workflows", workflow.to_string())).await, "/tasks/a/payload"),
        (
            put(&router, "/schedules/s", &json!({"every": "1h", "task": task})).await,
            "/task/payload",
        ),
    ] {
        let (status, code, errors) = answer.problem();
        assert_eq!((status, code.as_str()), (422, "INVALID_FIELDS"));
        assert_eq!(errors, [format!("{pointer} MASKED")]);
    }
    let batch = ask(&router, post("/tasks/batch", json!([task]).to_string())).await;
    assert_eq!(batch.json()["items"][0]["problem"]["errors"][0]["code"], "MASKED");
    ask(&router, post(&format!("/tasks/{id}/cancel"), "{}")).await;
    let replay = json!({"payload": masked}).to_string();
    let replay = ask(&router, post(&format!("/tasks/{id}/replay"), replay)).await;
    assert_eq!(replay.problem().2, ["/payload MASKED"]);
    let elsewhere = json!({"type": "echo", "payload": {"note": "***"}});
    assert_eq!(ask(&router, post("/tasks", elsewhere.to_string())).await.status, 201);
}

#[tokio::test]
async fn a_tenant_masks_what_it_says() {
    let engine = engine();
    let (router, acme) = (router_over(&engine), router_of(&engine, "acme"));
    redact(&router, &["/card/number"]).await;
    let record = json!({"settings": {"redact": ["/card/owner"]}});
    assert_eq!(put(&router, "/tenants/acme", &record).await.status, 201);
    let own = ask(&acme, post("/tasks", task().to_string())).await.json();
    assert_eq!(own["payload"], json!({"card": {"number": CANARY, "owner": "***"}}));
    shows_nothing(&ask(&router, post("/tasks", task().to_string())).await);
}
