//! API keys: create, list, revoke.

use axum::Router;
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, ask, engine, get, post, request, router, router_of, router_over};

async fn create(router: &Router, body: &Value) -> Answer {
    ask(router, post("/v1/keys", body.to_string())).await
}

async fn list(router: &Router, query: &str) -> Vec<Value> {
    let page = ask(router, get(&format!("/keys{query}"))).await.json();
    page["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_secret_is_shown_once() {
    let engine = engine();
    let router = router_over(&engine);
    let body = json!({"name": "mailer", "roles": ["submitter", "worker"], "queues": ["mail"],
        "types": ["email"], "expiresInSeconds": 60});
    let answer = create(&router, &body).await;
    assert_eq!(answer.status, 201);
    let mut created = answer.json();
    let secret = created.as_object_mut().unwrap().remove("secret").unwrap();
    let text = duly_engine::key_text::KeyText::parse(secret.as_str().unwrap()).unwrap();
    assert_eq!(created["roles"], json!(["submitter", "worker"]));
    assert_eq!((&created["tenant"], &created["queues"]), (&json!("default"), &json!(["mail"])));
    assert_eq!((&created["revokedAt"], &created["lastUsedAt"]), (&Value::Null, &Value::Null));
    assert!(created["expiresAt"].is_string());
    let found = engine.find_key(text.hash()).await.unwrap().unwrap();
    assert_eq!(found.id.to_string(), created["keyId"]);
    let listed = ask(&router, get("/keys")).await;
    assert!(!String::from_utf8(listed.body.clone()).unwrap().contains(secret.as_str().unwrap()));
    assert_eq!(listed.json()["items"], json!([created]));
}

#[tokio::test]
async fn a_key_without_restrictions_may_be_for_all_tenants() {
    let router = router();
    let own = create(&router, &json!({"name": "own", "roles": ["viewer"]})).await.json();
    let all = create(&router, &json!({"name": "all", "roles": ["admin"], "tenant": "*"})).await;
    assert_eq!(all.json()["tenant"], "*");
    assert_eq!(own["expiresAt"], Value::Null);
    let ids = async |query: &str| {
        let items = list(&router, query).await;
        items.iter().map(|item| item["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids("").await, ["own"]);
    assert_eq!(ids("?installation=true").await, ["all"]);
    let refused = ask(&router, get("/keys?installation=yes")).await;
    assert_eq!(refused.problem().1, "INVALID_PARAMETER");
}

#[tokio::test]
async fn pages_follow_each_other() {
    let router = router();
    for number in 0..3 {
        create(&router, &json!({"name": format!("key {number}"), "roles": ["viewer"]})).await;
    }
    let first = ask(&router, get("/keys?limit=2")).await.json();
    assert_eq!(first["items"].as_array().unwrap().len(), 2);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = ask(&router, get(&format!("/keys?limit=2&cursor={cursor}"))).await.json();
    // Keys of one millisecond come in any order.
    let both = [&first, &second].map(|page| page["items"].as_array().unwrap().clone()).concat();
    let mut names: Vec<_> = both.iter().map(|key| key["name"].clone()).collect();
    names.sort_by_key(ToString::to_string);
    assert_eq!(names, ["key 0", "key 1", "key 2"]);
    assert_eq!(second["nextCursor"], Value::Null);
    let foreign = format!("/keys?installation=true&cursor={cursor}");
    assert_eq!(ask(&router, get(&foreign)).await.problem().1, "INVALID_CURSOR");
}

#[tokio::test]
async fn a_revoked_key_stays_listed() {
    let router = router();
    let key = create(&router, &json!({"name": "own", "roles": ["viewer"]})).await.json();
    let path = format!("/v1/keys/{}", key["keyId"].as_str().unwrap());
    for _ in 0..2 {
        let revoked = ask(&router, request(Method::DELETE, &path, &[])).await;
        assert_eq!(revoked.status, 200);
        assert!(revoked.json()["revokedAt"].is_string());
    }
    assert!(list(&router, "").await[0]["revokedAt"].is_string());
    for id in ["01920000-0000-7000-8000-000000000000", "nonsense"] {
        let path = format!("/keys/{id}");
        let unknown = ask(&router, request(Method::DELETE, &path, &[])).await.problem();
        assert_eq!((unknown.0, unknown.1.as_str()), (404, "KEY_NOT_FOUND"));
    }
}

#[tokio::test]
async fn s02_a_tenant_sees_its_own_keys() {
    let engine = engine();
    let (acme, other) = (router_of(&engine, "acme"), router_of(&engine, "other"));
    create(&acme, &json!({"name": "own", "roles": ["viewer"]})).await;
    assert_eq!(list(&acme, "").await.len(), 1);
    assert!(list(&other, "").await.is_empty());
}

#[tokio::test]
async fn s05_what_the_server_decides_cannot_be_sent() {
    let router = router();
    for field in ["keyId", "secret", "hash", "createdAt", "revokedAt", "lastUsedAt", "expiresAt"] {
        let mut body = json!({"name": "x", "roles": ["viewer"]});
        body[field] = json!("x");
        let (status, code, errors) = create(&router, &body).await.problem();
        assert_eq!((status, code.as_str()), (422, "INVALID_FIELDS"), "{field}");
        assert_eq!(errors, [format!("/{field} UNKNOWN_FIELD")]);
    }
}
