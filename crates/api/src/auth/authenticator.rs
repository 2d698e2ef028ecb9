//! Checks the tokens of requests.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use duly_core::key::KeyHash;
use duly_core::ports::clock::Clock;
use duly_core::time::Timestamp;
use jsonwebtoken::{DecodingKey, Validation};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::config::{Algorithm, AuthConfig, KeyConfig};
use super::key::BadKey;
use super::remote_keys::{KeySource, RemoteKeys};
use super::sign::SigningKey;
use super::token::{CheckedToken, Claims, TOKEN_BYTES};

/// Tokens whose signature is not checked again: checking one costs more than a submit.
const KNOWN_TOKENS: usize = 4096;

/// The SHA-256 of what a caller sent, so that no token stays in memory.
pub(crate) type CredentialHash = [u8; 32];

/// Checks tokens by the configured keys.
pub struct Authenticator {
    issuer: String,
    audience: String,
    keys: HashMap<String, VerifyingKey>,
    signing: Option<SigningKey>,
    clock: Arc<dyn Clock>,
    known: Mutex<HashMap<CredentialHash, Arc<CheckedToken>>>,
    /// Keys that were good when they were used last.
    good_keys: Mutex<HashSet<KeyHash>>,
    /// Further keys, which the issuer publishes.
    remote: Option<RemoteKeys>,
}

/// What was found out about a token.
enum Verdict {
    Valid(Box<CheckedToken>),
    /// It names a key that is not known.
    UnknownKey,
    Invalid,
}

/// A key with the one algorithm that it is used with.
struct VerifyingKey {
    key: DecodingKey,
    rules: Validation,
}

impl Authenticator {
    /// Reads the keys.
    pub fn new(config: &AuthConfig, clock: Arc<dyn Clock>) -> Result<Self, BadKey> {
        let mut keys = HashMap::new();
        for configured in &config.keys {
            let rules = rules(configured.algorithm, &config.issuer, &config.audience);
            let key = VerifyingKey { key: configured.verifying()?, rules };
            if keys.insert(configured.id.clone(), key).is_some() {
                return Err(BadKey::Twice(configured.id.clone()));
            }
        }
        let this = Self {
            issuer: config.issuer.clone(),
            audience: config.audience.clone(),
            keys,
            signing: SigningKey::of(config, None)?,
            clock,
            known: Mutex::default(),
            good_keys: Mutex::default(),
            remote: None,
        };
        for configured in &config.keys {
            this.check_pair(config, configured)?;
        }
        Ok(this)
    }

    /// The same with the keys that the issuer publishes.
    #[must_use]
    pub fn with_remote_keys(self, source: Box<dyn KeySource>) -> Self {
        Self { remote: Some(RemoteKeys::new(source)), ..self }
    }

    /// The key that this server signs tokens with, if it has one.
    pub(crate) fn signing(&self) -> Option<&SigningKey> {
        self.signing.as_ref()
    }

    /// The time by which tokens are judged.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The token, if it is valid now. Which of its parts is wrong is never said.
    pub(crate) async fn check(&self, token: &str) -> Option<Arc<CheckedToken>> {
        if token.len() > TOKEN_BYTES {
            return None;
        }
        if let Some(remote) = self.remote.as_ref().filter(|remote| remote.are_old()) {
            self.fetch(remote, false).await;
        }
        let hash = hash(token);
        let known = self.known.lock().get(&hash).cloned();
        let checked = match known {
            Some(known) => known,
            None => {
                let checked = Arc::new(self.verify_with_all_keys(token).await?);
                self.remember(hash, Arc::clone(&checked));
                checked
            }
        };
        checked.is_current(self.clock.now()).then_some(checked)
    }

    /// Whether this token was valid before: then a failure of it guesses nothing.
    pub(crate) fn knows(&self, token: &str) -> bool {
        token.len() <= TOKEN_BYTES && self.known.lock().contains_key(&hash(token))
    }

    /// Notes whether an API key is good.
    pub(crate) fn note_key(&self, hash: KeyHash, is_good: bool) {
        let mut good = self.good_keys.lock();
        if !is_good {
            good.remove(&hash);
            return;
        }
        if good.len() >= KNOWN_TOKENS {
            good.clear();
        }
        good.insert(hash);
    }

    /// Whether an API key was good before.
    pub(crate) fn knows_key(&self, hash: &KeyHash) -> bool {
        self.good_keys.lock().contains(hash)
    }

    /// Fetches the published keys. What was checked by the old ones is checked anew.
    async fn fetch(&self, remote: &RemoteKeys, is_needed: bool) -> bool {
        let is_new = remote.fetch(is_needed).await;
        if is_new {
            self.known.lock().clear();
        }
        is_new
    }

    async fn verify_with_all_keys(&self, token: &str) -> Option<CheckedToken> {
        let mut verdict = self.verify(token);
        if let (Verdict::UnknownKey, Some(remote)) = (&verdict, &self.remote)
            && self.fetch(remote, true).await
        {
            verdict = self.verify(token);
        }
        match verdict {
            Verdict::Valid(token) => Some(*token),
            Verdict::UnknownKey | Verdict::Invalid => None,
        }
    }

    fn verify(&self, token: &str) -> Verdict {
        let Ok(header) = jsonwebtoken::decode_header(token) else { return Verdict::Invalid };
        // What must be understood is not understood here; `jku`, `x5u` and `jwk` are not looked at.
        if header.crit.is_some() {
            return Verdict::Invalid;
        }
        let own = match &header.kid {
            Some(id) => self.keys.get(id),
            None if self.keys.len() == 1 && self.remote.is_none() => self.keys.values().next(),
            None => return Verdict::Invalid,
        };
        let decoded = match own {
            Some(key) => jsonwebtoken::decode::<Claims>(token, &key.key, &key.rules),
            None => {
                let published = self.remote.as_ref().map(RemoteKeys::keys).unwrap_or_default();
                let key = header.kid.as_ref().and_then(|id| published.get(id));
                let Some((algorithm, key)) = key else { return Verdict::UnknownKey };
                let rules = rules(*algorithm, &self.issuer, &self.audience);
                jsonwebtoken::decode(token, key, &rules)
            }
        };
        let claims = decoded.ok().map(|decoded| decoded.claims);
        let token =
            claims.and_then(|claims| CheckedToken::new(claims, &self.issuer, &self.audience));
        token.map_or(Verdict::Invalid, |token| Verdict::Valid(Box::new(token)))
    }

    fn remember(&self, hash: CredentialHash, token: Arc<CheckedToken>) {
        let now = self.clock.now();
        let mut known = self.known.lock();
        if known.len() >= KNOWN_TOKENS {
            known.retain(|_, token| token.is_current(now));
        }
        if known.len() >= KNOWN_TOKENS {
            known.clear();
        }
        known.insert(hash, token);
    }

    /// Refuses a private half that does not belong to its public half: its tokens would be refused.
    fn check_pair(&self, config: &AuthConfig, configured: &KeyConfig) -> Result<(), BadKey> {
        let Some(signing) = SigningKey::of(config, Some(&configured.id))? else { return Ok(()) };
        let (token, _) = signing.sign(super::sign::trial(), self.clock.now());
        match self.verify(&token) {
            Verdict::Valid(_) => Ok(()),
            Verdict::UnknownKey | Verdict::Invalid => Err(configured.unpaired()),
        }
    }
}

/// The rules of a key. The library checks `iss` and `aud` only if they are listed as required. Times
/// are checked by [`CheckedToken::is_current`], with the clock of this server.
fn rules(algorithm: Algorithm, issuer: &str, audience: &str) -> Validation {
    let mut rules = Validation::new(algorithm.of_library());
    rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    rules.set_issuer(&[issuer]);
    rules.set_audience(&[audience]);
    rules.validate_exp = false;
    rules.validate_nbf = false;
    rules
}

fn hash(token: &str) -> CredentialHash {
    Sha256::digest(token.as_bytes()).into()
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ids: Vec<_> = self.keys.keys().collect();
        ids.sort_unstable();
        f.debug_struct("Authenticator").field("keys", &ids).finish_non_exhaustive()
    }
}
