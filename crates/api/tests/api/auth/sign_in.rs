//! S8, S11 and S26: API keys, cookies, and sign-ins that fail.

use std::time::Duration;

use axum::Router;
use axum::http::Method;
use duly_api::{Config, Limits, Tls, TlsFiles};
use duly_client::Client;
use duly_engine::Engine;
use serde_json::{Value, json};

use super::issuer::{
    as_bearer, assert_refused, claims, claims_of, config, guarded, guarded_router, key_file,
    read_with, token,
};
use crate::server::Server;
use crate::support::{Answer, ask, engine, post, request, router_over};

/// A key that an open router on the same engine has made.
async fn create_key(engine: &Engine, body: &Value) -> (String, String) {
    let answer = ask(&router_over(engine), post("/keys", body.to_string())).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let text = |name: &str| answer.json()[name].as_str().unwrap().to_owned();
    (text("secret"), text("keyId"))
}

async fn post_with(router: &Router, path: &str, token: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    ask(router, request(Method::POST, path, &headers).map(|_| body.to_string().into())).await
}

#[tokio::test]
async fn s08_a_key_is_a_bearer_until_it_is_revoked() {
    let engine = engine();
    let router = guarded_router(&engine, &config());
    let order = json!({"name": "mailer", "roles": ["operator"]});
    let (secret, id) = create_key(&engine, &order).await;
    assert_eq!(read_with(&router, &secret).await.status, 200);
    let exchanged = ask(&router, as_bearer(Method::POST, "/auth/token", &secret)).await;
    assert_eq!(exchanged.status, 200, "{exchanged:?}");
    let exchanged = exchanged.json();
    let exchanged = exchanged["token"].as_str().unwrap();
    assert_eq!(read_with(&router, exchanged).await.status, 200);
    let task = post_with(&router, "/tasks", exchanged, &json!({"type": "echo"})).await;
    assert_eq!(task.status, 201);
    // A token does not make itself longer.
    let again = ask(&router, as_bearer(Method::POST, "/auth/token", exchanged)).await;
    assert_eq!(again.problem().1, "KEY_REQUIRED");
    let path = format!("/keys/{id}");
    let open = router_over(&engine);
    assert_eq!(ask(&open, request(Method::DELETE, &path, &[])).await.status, 200);
    assert_refused(&router, &secret, "the key is revoked").await;
    assert_refused(&router, exchanged, "the key of the token is revoked").await;
}

#[tokio::test]
async fn s09_a_restricted_key_submits_and_works_only_where_it_may() {
    let engine = engine();
    let router = guarded_router(&engine, &config());
    let order = json!({"name": "mailer", "roles": ["operator", "worker"], "queues": ["mail"],
        "types": ["email"]});
    let (secret, _) = create_key(&engine, &order).await;
    let own = json!({"type": "email", "queue": "mail"});
    let submit = async |body: &Value| post_with(&router, "/tasks", &secret, body).await;
    assert_eq!(submit(&own).await.status, 201);
    let foreign = [json!({"type": "email"}), json!({"type": "other", "queue": "mail"})];
    for body in &foreign {
        assert_eq!(submit(body).await.problem().1, "FORBIDDEN", "{body}");
    }
    let batch = json!([own, foreign[0]]);
    let batch = post_with(&router, "/tasks/batch", &secret, &batch).await.json();
    assert!(batch["items"][0]["taskId"].is_string(), "{batch}");
    assert_eq!(batch["items"][1]["problem"]["code"], "FORBIDDEN", "{batch}");
    let workflow = json!({"tasks": {"a": {"type": "other", "queue": "mail"}}});
    let workflow = post_with(&router, "/workflows", &secret, &workflow).await;
    assert_eq!(workflow.problem().1, "FORBIDDEN");
    for (body, status) in [
        (json!({"types": ["email"]}), 201),
        (json!({"types": ["email"], "queues": ["mail"]}), 201),
        (json!({"types": ["email"], "queues": ["other"]}), 403),
        (json!({"types": ["email", "other"]}), 403),
    ] {
        let opened = post_with(&router, "/sessions", &secret, &body).await;
        assert_eq!(opened.status, status, "{body}");
    }
    let workers = ask(&router_over(&engine), request(Method::GET, "/workers", &[])).await.json();
    for worker in workers["items"].as_array().unwrap() {
        assert_eq!(worker["queues"], json!(["mail"]), "all queues means those of the key");
    }
    let paused = post_with(&router, "/queues/other/pause", &secret, &json!({})).await;
    assert_eq!(paused.problem().1, "FORBIDDEN");
}

#[tokio::test]
async fn s09_sessions_belong_to_the_key_that_opened_them() {
    let engine = engine();
    let router = guarded_router(&engine, &config());
    let order = json!({"name": "worker", "roles": ["worker"]});
    let (one, _) = create_key(&engine, &order).await;
    let (other, _) = create_key(&engine, &order).await;
    let opened = post_with(&router, "/sessions", &one, &json!({"types": ["echo"]})).await.json();
    let id = opened["sessionId"].as_str().unwrap();
    let beat = format!("/sessions/{id}/heartbeat");
    let submitted = ask(&router_over(&engine), post("/tasks", r#"{"type":"echo"}"#)).await.json();
    let task = &submitted["taskId"];
    let claim = json!({"sessionId": id, "seq": 1, "max": 1, "waitSeconds": 0});
    let lease = json!({"taskId": task, "epoch": 1, "seconds": 60});
    let extend = json!({"sessionId": id, "leases": [lease]});
    for (path, body) in [(beat.as_str(), json!({})), ("/leases", claim), ("/leases/extend", extend)]
    {
        let stolen = post_with(&router, path, &other, &body).await;
        assert_eq!(stolen.problem().1, "SESSION_NOT_FOUND", "{path}");
        assert_eq!(post_with(&router, path, &one, &body).await.status, 200, "{path}");
    }
    // A worker that leaves twice gets the same answer, and so does one that has no such session.
    let left = ask(&router, as_bearer(Method::DELETE, &format!("/sessions/{id}"), &other)).await;
    assert_eq!(left.status, 204);
    // A token that the key was exchanged for is the same caller.
    let exchanged = ask(&router, as_bearer(Method::POST, "/auth/token", &one)).await.json();
    let exchanged = exchanged["token"].as_str().unwrap();
    assert_eq!(post_with(&router, &beat, exchanged, &json!({})).await.status, 200);
    let outcome = json!({"taskId": task, "epoch": 1, "outcome": "success"});
    let finish = json!({"sessionId": id, "outcomes": [outcome]});
    for (caller, status) in [(other.as_str(), "UNKNOWN"), (exchanged, "DONE")] {
        let finished = post_with(&router, "/leases/finish", caller, &finish).await;
        assert_eq!(finished.json()["items"][0]["status"], status, "{finished:?}");
    }
}

fn cookie_of(answer: &Answer) -> String {
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn s26_a_browser_signs_in_with_a_cookie_that_other_sites_cannot_use() {
    let engine = engine();
    let router = guarded_router(&engine, &config());
    let (key, _) = create_key(&engine, &json!({"name": "ada", "roles": ["operator"]})).await;
    for secret in [key, token(&claims())] {
        let signed_in = ask(&router, as_bearer(Method::POST, "/auth/session", &secret)).await;
        assert_eq!(signed_in.status, 204, "{signed_in:?}");
        let attributes = signed_in.headers["set-cookie"].to_str().unwrap();
        for attribute in ["; HttpOnly", "; SameSite=Strict", "; Path=/", "; Max-Age="] {
            assert!(attributes.contains(attribute), "{attributes}");
        }
        let cookie = cookie_of(&signed_in);
        let send = async |method: Method, path: &str, more: &[(&str, &str)]| {
            let own = [("cookie", cookie.as_str()), ("content-type", "application/json")];
            let headers: Vec<_> = own.iter().chain(more).copied().collect();
            let body = if method == Method::GET { "" } else { r#"{"type":"echo"}"# };
            ask(&router, request(method, path, &headers).map(|_| body.into())).await
        };
        let own = ("origin", "http://localhost:8080");
        assert_eq!(send(Method::GET, "/tasks", &[]).await.status, 200);
        assert_eq!(send(Method::POST, "/tasks", &[own]).await.status, 201);
        for foreign in [
            &[][..],
            &[("origin", "http://evil.example")],
            &[("origin", "null")],
            &[("sec-fetch-site", "same-origin")],
            &[own, ("sec-fetch-site", "cross-site")],
        ] {
            let refused = send(Method::POST, "/tasks", foreign).await;
            assert_eq!(refused.problem().1, "CROSS_SITE", "{foreign:?}");
        }
    }
    let out = ask(&router, request(Method::DELETE, "/auth/session", &[])).await;
    assert_eq!(out.status, 204);
    assert!(out.headers["set-cookie"].to_str().unwrap().contains("duly_session=; "));
    let absent = ask(&router, request(Method::POST, "/auth/session", &[])).await;
    assert_eq!(absent.problem().1, "UNAUTHENTICATED");
}

#[tokio::test]
async fn s26_the_cookie_is_secure_where_the_connection_is() {
    let files = TlsFiles { certificate: key_file("server.cert.pem"), key: key_file("server.pem") };
    let config = Config { tls: Some(Tls::new(files).unwrap()), ..guarded(&config()) };
    let router = duly_api::router(engine(), config);
    let asked = as_bearer(Method::POST, "/auth/session", &token(&claims()));
    let signed_in = ask(&router, asked).await;
    assert!(signed_in.headers["set-cookie"].to_str().unwrap().ends_with("; Secure"));
}

#[tokio::test]
async fn s11_sign_ins_that_fail_are_limited() {
    let limits = Limits { failed_sign_ins: 3, ..Limits::default() };
    let config = Config { limits, ..guarded(&config()) };
    let router = duly_api::router(engine(), config.clone());
    let server = Server::serve(router, config).await;
    let good = token(&claims());
    let call = async |token: &str| {
        let client = Client::new(&server.url(), Some(token)).unwrap();
        client.list_tasks("", None, None).await
    };
    assert!(call(&good).await.is_ok());
    let guess = format!("duly_{}", "A".repeat(43));
    for wrong in ["a.b.c", &guess, "wrong"] {
        assert_eq!(call(wrong).await.unwrap_err().status(), Some(401));
    }
    let unseen = token(&claims_of("default", &["viewer"]));
    for refused in ["a.b.c", &guess, &unseen] {
        let error = call(refused).await.unwrap_err();
        assert_eq!(error.code(), Some("TOO_MANY_ATTEMPTS"), "{refused}");
        let wait = error.retry_after().unwrap();
        assert!(wait > Duration::ZERO && wait <= Duration::from_secs(60), "{wait:?}");
    }
    assert!(call(&good).await.is_ok(), "a token that is known to be good is no guess");
    assert!(Client::new(&server.url(), None).unwrap().version().await.is_ok());
    server.stop().await;
}
