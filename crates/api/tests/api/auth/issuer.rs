//! Signs tokens of every kind, also those that no honest issuer would.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use duly_api::{Algorithm, AuthConfig, Authenticator, Config, HostPolicy, KeyConfig, Secret};
use duly_core::ports::clock::Clock;
use duly_core::time::Timestamp;
use duly_engine::Engine;
use duly_store::clock::ManualClock;
use jsonwebtoken::EncodingKey;
use serde_json::{Value, json};

use crate::support::{Answer, ask, engine, request};

/// What the clock of the server says, in seconds.
pub(crate) const NOW: u64 = 1_900_000_000;
pub(crate) const SECRET: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

pub(crate) fn key_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/keys").join(name)
}

pub(crate) fn secret_key(id: &str, secret: &[u8]) -> KeyConfig {
    KeyConfig {
        id: id.to_owned(),
        algorithm: Algorithm::HS256,
        secret: Some(Secret::new(STANDARD.encode(secret))),
        secret_file: None,
        public_key_file: None,
        private_key_file: None,
    }
}

pub(crate) fn pair(id: &str, algorithm: Algorithm, name: &str) -> KeyConfig {
    KeyConfig {
        id: id.to_owned(),
        algorithm,
        secret: None,
        secret_file: None,
        public_key_file: Some(key_file(&format!("{name}.pub.pem"))),
        private_key_file: None,
    }
}

/// The key `hs`, with [`SECRET`].
pub(crate) fn config() -> AuthConfig {
    with_keys(vec![secret_key("hs", SECRET)])
}

pub(crate) fn with_keys(keys: Vec<KeyConfig>) -> AuthConfig {
    AuthConfig { issuer: "issuer".to_owned(), audience: "duly".to_owned(), keys, jwks: None }
}

pub(crate) fn clock() -> Arc<dyn Clock> {
    let millis = i64::try_from(NOW * 1000).unwrap();
    Arc::new(ManualClock::new(Timestamp::from_millis(millis)))
}

pub(crate) fn authenticator(config: &AuthConfig) -> Arc<Authenticator> {
    Arc::new(Authenticator::new(config, clock()).unwrap())
}

/// The settings of a server with keys.
pub(crate) fn guarded(config: &AuthConfig) -> Config {
    Config {
        auth: Some(authenticator(config)),
        allowed_hosts: HostPolicy::Any,
        ..Config::default()
    }
}

/// A router that asks for tokens.
pub(crate) fn router_with(config: &AuthConfig) -> Router {
    guarded_router(&engine(), config)
}

pub(crate) fn guarded_router(engine: &Engine, config: &AuthConfig) -> Router {
    duly_api::router(engine.clone(), guarded(config))
}

/// Claims that are right: those of an operator of `default`.
pub(crate) fn claims() -> Value {
    json!({
        "iss": "issuer", "aud": "duly", "sub": "ada", "exp": NOW + 300,
        "tenant": "default", "roles": ["operator"],
    })
}

/// The same with other roles and another tenant.
pub(crate) fn claims_of(tenant: &str, roles: &[&str]) -> Value {
    let mut claims = claims();
    claims["tenant"] = json!(tenant);
    claims["roles"] = json!(roles);
    claims
}

/// A token of the key `hs`.
pub(crate) fn token(claims: &Value) -> String {
    let header = json!({"alg": "HS256", "typ": "JWT", "kid": "hs"});
    sign(&header, claims, &EncodingKey::from_secret(SECRET), jsonwebtoken::Algorithm::HS256)
}

/// A token with any header, signed by any algorithm.
pub(crate) fn sign(
    header: &Value,
    claims: &Value,
    key: &EncodingKey,
    algorithm: jsonwebtoken::Algorithm,
) -> String {
    let message = format!("{}.{}", part(header), part(claims));
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), key, algorithm).unwrap();
    format!("{message}.{signature}")
}

pub(crate) fn part(json: &Value) -> String {
    URL_SAFE_NO_PAD.encode(json.to_string())
}

pub(crate) fn private_key(name: &str) -> Vec<u8> {
    std::fs::read(key_file(&format!("{name}.pem"))).unwrap()
}

/// A request with a token.
pub(crate) fn as_bearer(method: Method, path: &str, token: &str) -> Request<Body> {
    request(method, path, &[("authorization", &format!("Bearer {token}"))])
}

/// The answer to a read with a token.
pub(crate) async fn read_with(router: &Router, token: &str) -> Answer {
    ask(router, as_bearer(Method::GET, "/tasks", token)).await
}

/// Checks that a token is refused as every other that is wrong.
pub(crate) async fn assert_refused(router: &Router, token: &str, why: &str) {
    let answer = read_with(router, token).await;
    let (status, code, errors) = answer.problem();
    assert_eq!((status, code.as_str()), (401, "UNAUTHENTICATED"), "{why}");
    assert_eq!(answer.headers["www-authenticate"], "Bearer realm=\"duly\"", "{why}");
    let absent = ask(router, request(Method::GET, "/tasks", &[])).await;
    assert_eq!(answer.json()["detail"], absent.json()["detail"], "{why}");
    assert_eq!(answer.json()["title"], absent.json()["title"], "{why}");
    assert!(errors.is_empty(), "{why}");
}
