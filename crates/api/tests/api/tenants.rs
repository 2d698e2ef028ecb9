//! What one tenant has, another does not see.

use axum::Router;

use crate::support::{ask, engine, get, post, router_of};

fn routers() -> (Router, Router) {
    let engine = engine();
    (router_of(&engine, "ada"), router_of(&engine, "bob"))
}

#[tokio::test]
async fn a_foreign_task_answers_like_one_that_is_not_there() {
    let (ada, bob) = routers();
    let task = ask(&ada, post("/tasks", r#"{"type":"a"}"#)).await.json();
    let mine = format!("/tasks/{}", task["taskId"].as_str().unwrap());
    assert_eq!(ask(&ada, get(&mine)).await.status, 200);
    for suffix in ["", "?wait=1s"] {
        let foreign = ask(&bob, get(&format!("{mine}{suffix}"))).await;
        let random = "/tasks/01920000-0000-7000-8000-000000000000";
        let absent = ask(&bob, get(&format!("{random}{suffix}"))).await;
        assert_eq!(foreign.problem(), absent.problem());
        assert_eq!(foreign.json()["detail"], absent.json()["detail"]);
    }
}

#[tokio::test]
async fn lists_cursors_and_keys_belong_to_one_tenant() {
    let (ada, bob) = routers();
    let body = r#"{"type":"a","idempotencyKey":"k"}"#;
    let first = ask(&ada, post("/tasks", body)).await.json();
    ask(&ada, post("/tasks", r#"{"type":"a"}"#)).await;
    assert_eq!(ask(&bob, get("/tasks")).await.json()["items"], serde_json::json!([]));
    let page = ask(&ada, get("/tasks?limit=1")).await.json();
    let cursor = page["nextCursor"].as_str().unwrap();
    let (status, code, _) = ask(&bob, get(&format!("/tasks?cursor={cursor}"))).await.problem();
    assert_eq!((status, code.as_str()), (400, "INVALID_CURSOR"));
    let other = ask(&bob, post("/tasks", body)).await;
    assert_eq!(other.status, 201);
    assert_ne!(other.json()["taskId"], first["taskId"]);
}
