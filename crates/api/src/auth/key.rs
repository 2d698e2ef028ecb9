//! Keys as they are used: read once, and refused where they are weak.

use std::collections::BTreeSet;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use jsonwebtoken::{DecodingKey, DecodingKeyKind, EncodingKey};

use super::config::{Algorithm, KeyConfig};

/// Bytes of the shortest secret: 256 bits, as many as the signature has.
const SECRET_BYTES: usize = 32;
/// A random secret has more different bytes than this; a password that was repeated has not.
const DIFFERENT_BYTES: usize = 8;
/// Bytes of the public half of an RSA pair with 2048 bits, the shortest that is accepted.
const RSA_BYTES: usize = 256;
/// Bytes of a point on P-256.
const P256_BYTES: usize = 65;
/// Bytes of the public half of an Ed25519 pair.
const ED25519_BYTES: usize = 32;
/// Characters of an id.
const ID_CHARS: usize = 100;

/// Why a key cannot be used. Never shows the key.
#[derive(Debug, thiserror::Error)]
pub enum BadKey {
    /// The id is empty, too long or not plain.
    #[error("the id of a key must have 1 to {ID_CHARS} characters: letters, digits, `.`, `_`, `-`")]
    Id,
    /// Two keys have one id.
    #[error("key {0}: there are two keys of this id")]
    Twice(String),
    /// The combination of fields is wrong.
    #[error("key {id}: {algorithm} needs {needed}")]
    Fields {
        /// Its id.
        id: String,
        /// Its algorithm.
        algorithm: Algorithm,
        /// What it needs.
        needed: &'static str,
    },
    /// A file cannot be read.
    #[error("key {id}: cannot read {path}: {source}")]
    File {
        /// Its id.
        id: String,
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The content is not what it should be.
    #[error("key {id}: {why}")]
    Content {
        /// Its id.
        id: String,
        /// What is wrong, and what to do.
        why: &'static str,
    },
}

const NEEDS_SECRET: &str = "`secretFile` or `secret`, and no key files";
const NEEDS_PAIR: &str = "`publicKeyFile`, and no secret";
const WEAK_SECRET: &str = "the secret is weak: it must have 32 random bytes or more, in base64; make \
                           one with `openssl rand -base64 32`";

impl KeyConfig {
    /// The half that checks tokens.
    pub(super) fn verifying(&self) -> Result<DecodingKey, BadKey> {
        self.check_id()?;
        if self.algorithm == Algorithm::HS256 {
            return Ok(DecodingKey::from_secret(&self.read_secret()?));
        }
        let Some(path) = self.public_key_file.as_deref().filter(|_| self.has_no_secret()) else {
            return Err(self.needs(NEEDS_PAIR));
        };
        let pem = self.read(path)?;
        if !contains(&pem, b"PUBLIC KEY") || contains(&pem, b"PRIVATE KEY") {
            return Err(self.bad(
                "publicKeyFile holds no public key; `openssl pkey -pubout` makes \
                                 one of a private key",
            ));
        }
        let key = match self.algorithm {
            Algorithm::RS256 => DecodingKey::from_rsa_pem(&pem),
            Algorithm::ES256 => DecodingKey::from_ec_pem(&pem),
            Algorithm::HS256 | Algorithm::EdDSA => DecodingKey::from_ed_pem(&pem),
        };
        let key = key.map_err(|_| {
            self.bad(
                "publicKeyFile is no public key of this algorithm in PEM, such as \
                      `openssl pkey -pubout` writes",
            )
        })?;
        self.check_strength(&key)?;
        Ok(key)
    }

    /// The half that signs tokens, if it is there.
    pub(super) fn signing(&self) -> Result<Option<EncodingKey>, BadKey> {
        self.check_id()?;
        if self.algorithm == Algorithm::HS256 {
            return Ok(Some(EncodingKey::from_secret(&self.read_secret()?)));
        }
        let Some(path) = &self.private_key_file else { return Ok(None) };
        let pem = self.read(path)?;
        let key = match self.algorithm {
            Algorithm::RS256 => EncodingKey::from_rsa_pem(&pem),
            Algorithm::ES256 => EncodingKey::from_ec_pem(&pem),
            Algorithm::HS256 | Algorithm::EdDSA => EncodingKey::from_ed_pem(&pem),
        };
        let key = key.map_err(|_| {
            self.bad(
                "privateKeyFile is no private key of this algorithm in PEM (PKCS #8), such \
                      as `openssl genpkey` writes",
            )
        })?;
        Ok(Some(key))
    }

    /// The error for a private half that does not sign.
    pub(super) fn unfit(&self) -> BadKey {
        self.bad("privateKeyFile cannot sign with this algorithm; make a key for it")
    }

    /// The error for halves of different pairs.
    pub(super) fn unpaired(&self) -> BadKey {
        self.bad("publicKeyFile and privateKeyFile belong to different pairs")
    }

    fn check_id(&self) -> Result<(), BadKey> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let is_id = (1..=ID_CHARS).contains(&self.id.len()) && self.id.chars().all(is_plain);
        if is_id { Ok(()) } else { Err(BadKey::Id) }
    }

    fn has_no_secret(&self) -> bool {
        self.secret.is_none() && self.secret_file.is_none()
    }

    fn read_secret(&self) -> Result<Vec<u8>, BadKey> {
        let has_files = self.public_key_file.is_some() || self.private_key_file.is_some();
        let text = match (&self.secret, &self.secret_file) {
            (Some(secret), None) if !has_files => secret.reveal().to_owned(),
            (None, Some(path)) if !has_files => {
                let text = String::from_utf8(self.read(path)?);
                text.map_err(|_| self.bad("secretFile must hold the secret in base64"))?
            }
            _ => return Err(self.needs(NEEDS_SECRET)),
        };
        let secret = decode(text.trim()).ok_or_else(|| {
            self.bad("the secret is not base64; make one with `openssl rand -base64 32`")
        })?;
        let different: BTreeSet<u8> = secret.iter().copied().collect();
        if secret.len() < SECRET_BYTES || different.len() <= DIFFERENT_BYTES {
            return Err(self.bad(WEAK_SECRET));
        }
        Ok(secret)
    }

    fn check_strength(&self, key: &DecodingKey) -> Result<(), BadKey> {
        let DecodingKeyKind::SecretOrDer(bytes) = key.kind() else { return Ok(()) };
        match self.algorithm {
            Algorithm::RS256 if bytes.len() < RSA_BYTES => {
                Err(self.bad("the RSA key is weak: it must have 2048 bits or more"))
            }
            Algorithm::ES256 if bytes.len() != P256_BYTES => {
                Err(self.bad("ES256 needs a key on the curve P-256"))
            }
            Algorithm::EdDSA if bytes.len() != ED25519_BYTES => {
                Err(self.bad("EdDSA needs an Ed25519 key"))
            }
            _ => Ok(()),
        }
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, BadKey> {
        std::fs::read(path).map_err(|source| BadKey::File {
            id: self.id.clone(),
            path: path.display().to_string(),
            source,
        })
    }

    fn needs(&self, needed: &'static str) -> BadKey {
        BadKey::Fields { id: self.id.clone(), algorithm: self.algorithm, needed }
    }

    fn bad(&self, why: &'static str) -> BadKey {
        BadKey::Content { id: self.id.clone(), why }
    }
}

fn contains(bytes: &[u8], words: &[u8]) -> bool {
    bytes.windows(words.len()).any(|part| part == words)
}

/// Base64 in any of its spellings.
fn decode(text: &str) -> Option<Vec<u8>> {
    let spellings = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
    spellings.iter().find_map(|spelling| spelling.decode(text).ok())
}

#[cfg(test)]
mod tests {
    use super::super::config::Secret;
    use super::*;

    fn hs256(secret: &str) -> Result<DecodingKey, BadKey> {
        let key = KeyConfig {
            id: "k1".to_owned(),
            algorithm: Algorithm::HS256,
            secret: Some(Secret::new(secret)),
            secret_file: None,
            public_key_file: None,
            private_key_file: None,
        };
        key.verifying()
    }

    #[test]
    fn s27_a_weak_secret_is_refused() {
        let random: Vec<u8> = (0..32).map(|n| n * 7 + 3).collect();
        assert!(hs256(&STANDARD.encode(&random)).is_ok());
        assert!(hs256(&URL_SAFE_NO_PAD.encode(&random)).is_ok());
        for weak in [
            STANDARD.encode(&random[..31]),
            STANDARD.encode([b'x'; 64]),
            STANDARD.encode("passwordpasswordpasswordpassword"),
            String::new(),
            "no base64!".to_owned(),
        ] {
            let why = hs256(&weak).unwrap_err().to_string();
            assert!(why.contains("openssl rand -base64 32"), "{weak}: {why}");
            assert!(weak.is_empty() || !why.contains(&weak), "{why}");
        }
    }

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new("hidden");
        assert_eq!(format!("{secret:?}"), "***");
        let bad = serde_json::from_str::<Secret>("12345").unwrap_err().to_string();
        assert!(!bad.contains("12345"), "{bad}");
    }
}
