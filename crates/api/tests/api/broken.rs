//! A store that fails, and what callers are told about it.

use std::sync::Arc;

use axum::Router;
use duly_core::ports::store::{Error, Result, Rules};
use duly_engine::random::OsRandom;
use duly_engine::{Config, Engine};
use duly_store::clock::SystemClock;
use duly_store::layer::{BoxFuture, Call, Layer, Layered};
use duly_store::memory::MemoryStore;

use crate::support::{ask, get, post, request, router_over};

/// Fails every call with the same error, except for a look at the clock.
struct Broken(fn() -> Error);

impl Layer for Broken {
    async fn call<'a, T, F>(&'a self, call: Call<'a>, inner: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    {
        if call.name == "now" { inner().await } else { Err(self.0()) }
    }
}

fn broken(error: fn() -> Error) -> Router {
    let clock = Arc::new(SystemClock::default());
    let memory = Arc::new(MemoryStore::new(clock, Rules::default()));
    let store = Arc::new(Layered::new(Broken(error), memory));
    router_over(&Engine::start(store, Arc::new(OsRandom::new()), Config::default()))
}

/// A change of any version.
fn put(path: &str, body: &'static str) -> axum::http::Request<axum::body::Body> {
    let headers = [("content-type", "application/json"), ("if-match", "*")];
    request(axum::http::Method::PUT, path, &headers).map(|_| body.into())
}

const ID: &str = "/tasks/01920000-0000-7000-8000-000000000000";

#[tokio::test]
async fn a_store_that_is_away_says_why_and_when_to_come_back() {
    let router = broken(|| Error::Unavailable { reason: "the disk is full; free some".to_owned() });
    for asked in [
        get(ID),
        get(&format!("{ID}?wait=1s")),
        get("/tasks"),
        post("/tasks", r#"{"type":"a"}"#),
        post("/tasks/batch", r#"[{"type":"a"}]"#),
        get(&format!("{ID}/attempts")),
        get(&format!("{ID}/logs?wait=1s")),
        get("/dlq"),
        get("/dlq/groups"),
        get(&format!("{ID}/explain")),
        get("/queues"),
        get("/queues/mail/stats"),
        post("/queues/mail/pause", ""),
        post("/queues/mail/resume", ""),
        post("/dlq/replay", "{}"),
        post("/dlq/purge", r#"{"all":true}"#),
        post("/sessions", r#"{"types":["a"]}"#),
        get("/nodes"),
        get("/settings"),
        get("/settings/history"),
        put("/settings", "{}"),
    ] {
        let answer = ask(&router, asked).await;
        let (status, code, _) = answer.problem();
        assert_eq!((status, code.as_str()), (503, "STORE_UNAVAILABLE"));
        assert_eq!(answer.headers["retry-after"], "1");
        assert!(answer.json()["detail"].as_str().unwrap().contains("the disk is full"));
    }
    let answer = ask(&router, get("/readyz?verbose")).await;
    assert_eq!(answer.status, 503);
    assert!(answer.json()["reasons"][0].as_str().unwrap().contains("the disk is full"));
    assert_eq!(answer.json()["checks"][1], serde_json::json!({"name": "store", "ok": false}));
    assert_eq!(ask(&router, get("/livez")).await.status, 200);
}

#[tokio::test]
async fn s27_what_is_broken_inside_stays_inside() {
    let backend = || Error::Backend { name: "test", source: "SELECT secret FROM x".into() };
    let corrupt = || Error::Corrupt { table: "secret", column: "secret", id: "secret".to_owned() };
    for router in [broken(backend), broken(corrupt)] {
        for asked in [
            get(ID),
            get("/tasks"),
            get("/dlq"),
            post("/dlq/replay", "{}"),
            post("/tasks", r#"{"type":"a"}"#),
            post("/sessions", r#"{"types":["a"]}"#),
            get("/settings"),
            put("/settings", "{}"),
        ] {
            let answer = ask(&router, asked).await;
            let (status, code, _) = answer.problem();
            assert_eq!((status, code.as_str()), (500, "INTERNAL"));
            assert!(!String::from_utf8(answer.body).unwrap().contains("secret"));
        }
        let answer = ask(&router, get("/readyz")).await;
        assert!(!String::from_utf8(answer.body).unwrap().contains("secret"));
    }
}

#[tokio::test]
async fn a_limit_of_the_store_is_the_callers_to_keep() {
    let router = broken(|| Error::TooLarge { what: "a batch of tasks", limit: 1000 });
    let answer = ask(&router, post("/tasks", r#"{"type":"a"}"#)).await;
    let (status, code, _) = answer.problem();
    assert_eq!((status, code.as_str()), (413, "TOO_LARGE"));
}
