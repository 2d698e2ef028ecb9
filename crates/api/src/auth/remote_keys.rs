//! Public keys that the issuer publishes under a URL (JWKS), so that it can change them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::Instant;

use super::config::Algorithm;

/// The shortest time between two fetches, whatever tokens name.
const PAUSE: Duration = Duration::from_secs(30);
/// The age at which the keys are fetched again: a key that was taken back counts no longer.
const FRESH: Duration = Duration::from_secs(5 * 60);
/// Keys of one set.
const KEYS: usize = 100;
/// Bytes of the modulus of an RSA key with 2048 bits.
const RSA_BYTES: usize = 256;

/// Reads a set of keys.
pub trait KeySource: Send + Sync {
    /// The document as it is now, or why it cannot be read.
    fn fetch(&self) -> BoxFuture<'_, Result<Vec<u8>, String>>;
}

/// The keys of an issuer, by id.
pub(super) type KeySet = HashMap<String, (Algorithm, DecodingKey)>;

/// The keys as they were fetched last.
pub(super) struct RemoteKeys {
    source: Box<dyn KeySource>,
    state: Mutex<State>,
    /// Held while they are fetched.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    keys: Arc<KeySet>,
    /// When a fetch began last.
    tried: Option<Instant>,
    /// When one has succeeded last.
    fetched: Option<Instant>,
}

impl RemoteKeys {
    pub(super) fn new(source: Box<dyn KeySource>) -> Self {
        Self { source, state: Mutex::default(), fetching: tokio::sync::Mutex::default() }
    }

    pub(super) fn keys(&self) -> Arc<KeySet> {
        Arc::clone(&self.state.lock().keys)
    }

    /// Whether they are so old that they should be fetched again.
    pub(super) fn are_old(&self) -> bool {
        self.state.lock().fetched.is_none_or(|at| at.elapsed() >= FRESH)
    }

    /// Fetches them, unless that was tried shortly before. Returns whether they are new. Where they are
    /// not needed, it does not wait for another caller that fetches them already.
    pub(super) async fn fetch(&self, is_needed: bool) -> bool {
        let _fetching = match self.fetching.try_lock() {
            Ok(fetching) => fetching,
            Err(_) if is_needed => self.fetching.lock().await,
            Err(_) => return false,
        };
        {
            let mut state = self.state.lock();
            if state.tried.is_some_and(|at| at.elapsed() < PAUSE) {
                return false;
            }
            state.tried = Some(Instant::now());
        }
        let read = self.source.fetch().await.and_then(|document| read(&document));
        match read {
            Ok(keys) => {
                let mut state = self.state.lock();
                state.keys = Arc::new(keys);
                state.fetched = Some(Instant::now());
                true
            }
            Err(why) => {
                tracing::warn!(why, "cannot fetch the keys of the issuer; keeping those known");
                false
            }
        }
    }
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<serde_json::Value>,
}

/// The keys of a document that can be used. Others are left out: an issuer may have more.
fn read(document: &[u8]) -> Result<KeySet, String> {
    let set: Set = serde_json::from_slice(document).map_err(|why| format!("no key set: {why}"))?;
    if set.keys.len() > KEYS {
        return Err(format!("it has more than {KEYS} keys"));
    }
    let keys = set.keys.into_iter().filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
    Ok(keys.filter_map(|key| read_key(&key)).collect())
}

/// A public key for signatures, with the one algorithm that it is used with. A shared secret in a public
/// document is none.
fn read_key(key: &Jwk) -> Option<(String, (Algorithm, DecodingKey))> {
    let id = key.common.key_id.clone()?;
    if key.common.public_key_use.as_ref().is_some_and(|it| *it != PublicKeyUse::Signature) {
        return None;
    }
    let algorithm = match &key.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(it) if it.curve == EllipticCurve::P256 => {
            Algorithm::ES256
        }
        AlgorithmParameters::OctetKeyPair(it) if it.curve == EllipticCurve::Ed25519 => {
            Algorithm::EdDSA
        }
        _ => return None,
    };
    let named = match key.common.key_algorithm {
        None => Some(algorithm),
        Some(KeyAlgorithm::RS256) => Some(Algorithm::RS256),
        Some(KeyAlgorithm::ES256) => Some(Algorithm::ES256),
        Some(KeyAlgorithm::EdDSA) => Some(Algorithm::EdDSA),
        Some(_) => None,
    };
    if named != Some(algorithm) {
        return None;
    }
    let decoding = DecodingKey::from_jwk(key).ok()?;
    let is_weak = match decoding.kind() {
        jsonwebtoken::DecodingKeyKind::RsaModulusExponent { n, .. } => n.len() < RSA_BYTES,
        jsonwebtoken::DecodingKeyKind::SecretOrDer(_) => false,
    };
    (!is_weak).then_some((id, (algorithm, decoding)))
}
