//! What an operator configures: the issuer, the audience and the keys of tokens.

use std::fmt;
use std::path::PathBuf;

use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};

/// Which tokens a server accepts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthConfig {
    /// What the claim `iss` must be.
    #[serde(default = "duly")]
    pub issuer: String,
    /// What the claim `aud` must be, or contain.
    #[serde(default = "duly")]
    pub audience: String,
    /// The keys that tokens may be signed with.
    #[serde(default)]
    pub keys: Vec<KeyConfig>,
    /// Where the issuer publishes further keys (JWKS).
    #[serde(default)]
    pub jwks: Option<String>,
}

/// The issuer and audience of an installation that names none.
fn duly() -> String {
    "duly".to_owned()
}

/// One key. A secret signs and checks; of a pair, the public half checks and the private half signs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct KeyConfig {
    /// What a token calls it, in the header `kid`.
    pub id: String,
    /// The one algorithm that it is used with, whatever a token says.
    pub algorithm: Algorithm,
    /// The secret of HS256 in base64.
    pub secret: Option<Secret>,
    /// A file with the secret in base64.
    pub secret_file: Option<PathBuf>,
    /// A PEM file with the public half of a pair.
    pub public_key_file: Option<PathBuf>,
    /// A PEM file with the private half of a pair, where tokens are to be signed.
    pub private_key_file: Option<PathBuf>,
}

/// How a token is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub enum Algorithm {
    /// HMAC with SHA-256: a node that checks tokens can also sign them.
    HS256,
    /// RSA, PKCS #1 v1.5, with SHA-256.
    RS256,
    /// ECDSA on P-256 with SHA-256.
    ES256,
    /// Ed25519.
    EdDSA,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::HS256, Self::RS256, Self::ES256, Self::EdDSA];

    /// Its name in tokens.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HS256 => "HS256",
            Self::RS256 => "RS256",
            Self::ES256 => "ES256",
            Self::EdDSA => "EdDSA",
        }
    }

    /// The same for the library.
    pub(super) const fn of_library(self) -> jsonwebtoken::Algorithm {
        match self {
            Self::HS256 => jsonwebtoken::Algorithm::HS256,
            Self::RS256 => jsonwebtoken::Algorithm::RS256,
            Self::ES256 => jsonwebtoken::Algorithm::ES256,
            Self::EdDSA => jsonwebtoken::Algorithm::EdDSA,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<'de> Deserialize<'de> for Secret {
    /// The parser would show a value of another type in its message.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Given {
            Text(String),
            Other(IgnoredAny),
        }
        match Given::deserialize(from)? {
            Given::Text(text) => Ok(Self(text)),
            Given::Other(_) => Err(D::Error::custom("the secret must be a text; quote it")),
        }
    }
}
