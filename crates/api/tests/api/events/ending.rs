//! Why streams end.

use std::time::Duration;

use axum::http::Method;
use serde_json::json;

use super::reader::Reader;
use crate::auth::issuer::{as_bearer, claims, claims_of, config, guarded_router, token};
use crate::support::{ask, engine, post, request, router, router_over};

#[tokio::test(start_paused = true)]
async fn s08_a_stream_ends_when_its_token_expires() {
    let engine = engine();
    let router = guarded_router(&engine, &config());
    let bearer = format!("Bearer {}", token(&claims()));
    let begin = tokio::time::Instant::now();
    let headers = [("authorization", bearer.as_str())];
    let mut reader = Reader::open_with(&router, "topics=events", &headers).await;
    assert_eq!(reader.closing_code().await, "TOKEN_EXPIRED");
    // With the leeway that every request has.
    assert_eq!(begin.elapsed().as_secs(), 360);
}

#[tokio::test(start_paused = true)]
async fn s08_a_stream_ends_when_its_key_is_revoked() {
    let engine = engine();
    let (open, router) = (router_over(&engine), guarded_router(&engine, &config()));
    for exchanged in [false, true] {
        let order = json!({"name": "dashboard", "roles": ["operator"]}).to_string();
        let key = ask(&open, post("/keys", order)).await.json();
        let mut secret = key["secret"].as_str().unwrap().to_owned();
        if exchanged {
            let token = ask(&router, as_bearer(Method::POST, "/auth/token", &secret)).await.json();
            token["token"].as_str().unwrap().clone_into(&mut secret);
        }
        let bearer = format!("Bearer {secret}");
        let headers = [("authorization", bearer.as_str())];
        let mut reader = Reader::open_with(&router, "topics=stats", &headers).await;
        reader.data("stats").await;
        let path = format!("/keys/{}", key["keyId"].as_str().unwrap());
        let begin = tokio::time::Instant::now();
        assert_eq!(ask(&open, request(Method::DELETE, &path, &[])).await.status, 200);
        assert_eq!(reader.closing_code().await, "KEY_REVOKED", "exchanged: {exchanged}");
        assert!(begin.elapsed() <= Duration::from_secs(5));
    }
}

#[tokio::test]
async fn s08_a_stream_ends_when_its_key_expires() {
    let engine = engine();
    let (open, router) = (router_over(&engine), guarded_router(&engine, &config()));
    let order = json!({"name": "visitor", "roles": ["viewer"], "expiresInSeconds": 1});
    let key = ask(&open, post("/keys", order.to_string())).await.json();
    let bearer = format!("Bearer {}", key["secret"].as_str().unwrap());
    let headers = [("authorization", bearer.as_str())];
    let mut reader = Reader::open_with(&router, "topics=events", &headers).await;
    assert_eq!(reader.closing_code().await, "KEY_REVOKED");
}

#[tokio::test]
async fn a_stream_ends_with_the_server() {
    let engine = engine();
    let mut reader = Reader::open(&router_over(&engine), "topics=stats,events").await;
    engine.begin_close();
    assert_eq!(reader.closing_code().await, "SHUTTING_DOWN");
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_the_caller_wants() {
    let begin = tokio::time::Instant::now();
    let mut reader = Reader::open(&router(), "topics=events&wait=20s").await;
    assert_eq!(reader.closing_code().await, "WAIT_OVER");
    assert_eq!(begin.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_for_long_is_cut_off() {
    let router = router();
    let mut slow = Reader::open(&router, "topics=stats").await;
    slow.data("stats").await;
    tokio::time::advance(Duration::from_secs(29)).await;
    slow.data("stats").await;
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(slow.closing_code().await, "SLOW_READER");
}

#[tokio::test]
async fn s04_a_stream_takes_the_role_and_the_tenant_of_its_caller() {
    let engine = engine();
    let router = guarded_router(&engine, &config());
    let status = async |tenant: &str, role: &str, query: &str| {
        let token = token(&claims_of(tenant, &[role]));
        let path = format!("/events?topics=stats&wait=1ms{query}");
        ask(&router, as_bearer(Method::GET, &path, &token)).await.status.as_u16()
    };
    assert_eq!(status("default", "viewer", "").await, 200);
    assert_eq!(status("default", "worker", "").await, 403);
    assert_eq!(status("default", "viewer", "&tenant=other").await, 403);
    assert_eq!(status("*", "viewer", "").await, 422);
    assert_eq!(status("*", "viewer", "&tenant=other").await, 200);
}
