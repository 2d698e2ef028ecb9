//! What one tenant has, another does not see.

use axum::Router;
use axum::http::Method;
use duly_api::{Config, Tenants};

use crate::support::{ask, engine, get, post, request, router_of};

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

#[tokio::test]
async fn where_callers_are_believed_the_header_names_the_tenant() {
    let config = Config { tenants: Tenants::ByHeader, ..Config::default() };
    let router = duly_api::router(engine(), config);
    let task = ask(&router, post("/tasks", r#"{"type":"a"}"#)).await.json();
    let path = format!("/tasks/{}", task["taskId"].as_str().unwrap());
    let as_tenant = |name| request(Method::GET, &path, &[("duly-tenant", name)]);
    assert_eq!(ask(&router, get(&path)).await.status, 200);
    assert_eq!(ask(&router, as_tenant("default")).await.status, 200);
    assert_eq!(ask(&router, as_tenant("other")).await.status, 404);
    let (status, code, _) = ask(&router, as_tenant("No Name")).await.problem();
    assert_eq!((status, code.as_str()), (400, "INVALID_PARAMETER"));
}
