//! S8: keys that the issuer publishes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use duly_api::{Authenticator, Config, KeySource};
use futures_util::future::BoxFuture;
use jsonwebtoken::{Algorithm, EncodingKey};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::issuer::{
    SECRET, assert_refused, claims, clock, key_file, private_key, read_with, sign, with_keys,
};
use crate::support::engine;

/// An issuer that counts how often it is asked.
#[derive(Default)]
struct Issuer {
    /// Nothing while it is away.
    document: Mutex<Option<Value>>,
    asked: AtomicUsize,
}

struct Source(Arc<Issuer>);

impl KeySource for Source {
    fn fetch(&self) -> BoxFuture<'_, Result<Vec<u8>, String>> {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        let document = self.0.document.lock().as_ref().map(|it| it.to_string().into_bytes());
        Box::pin(async { document.ok_or_else(|| "it is away".to_owned()) })
    }
}

impl Issuer {
    fn publish(&self, keys: &[Value]) {
        *self.document.lock() = Some(json!({"keys": keys}));
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn router(self: &Arc<Self>) -> Router {
        let auth = Authenticator::new(&with_keys(Vec::new()), clock()).unwrap();
        let auth = auth.with_remote_keys(Box::new(Source(Arc::clone(self))));
        let config = Config { auth: Some(Arc::new(auth)), ..Config::default() };
        duly_api::router(engine(), config)
    }
}

/// The public half of the Ed25519 pair: the end of its file.
fn ed25519(id: &str) -> Value {
    let pem = std::fs::read_to_string(key_file("ed25519.pub.pem")).unwrap();
    let lines: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let der = STANDARD.decode(lines).unwrap();
    let x = URL_SAFE_NO_PAD.encode(&der[der.len() - 32..]);
    json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "use": "sig", "alg": "EdDSA", "x": x})
}

fn token(id: &str) -> String {
    let key = EncodingKey::from_ed_pem(&private_key("ed25519")).unwrap();
    sign(&json!({"alg": "EdDSA", "kid": id}), &claims(), &key, Algorithm::EdDSA)
}

#[tokio::test(start_paused = true)]
async fn s08_published_keys_come_and_go() {
    let issuer = Arc::new(Issuer::default());
    issuer.publish(&[ed25519("first")]);
    let router = issuer.router();
    assert_eq!(read_with(&router, &token("first")).await.status, 200);
    assert_eq!(issuer.asked(), 1);
    // A new key is found as soon as a token names it, but not within 30 s of the last fetch.
    issuer.publish(&[ed25519("first"), ed25519("second")]);
    assert_refused(&router, &token("second"), "not fetched yet").await;
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(read_with(&router, &token("second")).await.status, 200);
    // One that is taken back counts until the keys are fetched again, after 5 minutes.
    issuer.publish(&[ed25519("second")]);
    assert_eq!(read_with(&router, &token("first")).await.status, 200);
    tokio::time::advance(Duration::from_secs(300)).await;
    assert_refused(&router, &token("first"), "taken back").await;
    assert_eq!(read_with(&router, &token("second")).await.status, 200);
    // While the issuer is away, the keys that are known go on.
    *issuer.document.lock() = None;
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert_eq!(read_with(&router, &token("second")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn s08_a_flood_of_unknown_keys_causes_one_fetch() {
    let issuer = Arc::new(Issuer::default());
    issuer.publish(&[ed25519("first")]);
    let router = issuer.router();
    for n in 0..200 {
        assert_refused(&router, &token(&format!("unknown-{n}")), "unknown").await;
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    assert_eq!(issuer.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn s06_only_public_keys_for_signatures_are_taken() {
    let issuer = Arc::new(Issuer::default());
    let k = URL_SAFE_NO_PAD.encode(SECRET);
    let with = |name: &str, value: Value| {
        let mut key = ed25519("bad");
        key[name] = value;
        key
    };
    for bad in [
        json!({"kty": "oct", "kid": "bad", "k": k, "alg": "HS256"}),
        with("use", json!("enc")),
        with("alg", json!("RS256")),
        with("kid", Value::Null),
        with("x", json!(5)),
        json!({"kty": "RSA", "kid": "bad", "n": URL_SAFE_NO_PAD.encode([0xff; 128]), "e": "AQAB"}),
        json!("nonsense"),
    ] {
        issuer.publish(&[bad.clone(), ed25519("good")]);
        let router = issuer.router();
        let hmac = EncodingKey::from_secret(SECRET);
        let header = json!({"alg": "HS256", "kid": "bad"});
        let signed = sign(&header, &claims(), &hmac, Algorithm::HS256);
        assert_refused(&router, &signed, &bad.to_string()).await;
        assert_refused(&router, &token("bad"), &bad.to_string()).await;
        assert_eq!(read_with(&router, &token("good")).await.status, 200, "{bad}");
    }
}
