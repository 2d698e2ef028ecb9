//! New tokens.

use std::time::Duration;

use duly_core::access::{AccessRole, AccessRoles, TenantGrant};
use duly_core::key::KeyHash;
use duly_core::time::Timestamp;
use jsonwebtoken::{EncodingKey, Header};
use serde::Serialize;

use super::config::{Algorithm, AuthConfig};
use super::key::BadKey;
use super::token::{Audience, Claims, hex_of_hash, seconds};

/// A key that tokens are signed with, with the issuer and audience that it signs for.
#[derive(Clone)]
pub struct SigningKey {
    id: String,
    algorithm: Algorithm,
    key: EncodingKey,
    issuer: String,
    audience: String,
}

/// A token to sign.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Who it is for; the audit log names it.
    pub subject: String,
    /// For whose objects it is.
    pub grant: TenantGrant,
    /// What it allows.
    pub roles: AccessRoles,
    /// How long it may be used.
    pub expires_in: Duration,
    /// The API key that it is exchanged for.
    pub key: Option<KeyHash>,
}

impl SigningKey {
    /// The key of this id, or the first that can sign. `None` if there is none.
    pub fn of(config: &AuthConfig, id: Option<&str>) -> Result<Option<Self>, BadKey> {
        let wanted = config.keys.iter().filter(|key| id.is_none_or(|id| key.id == id));
        for configured in wanted {
            let Some(key) = configured.signing()? else { continue };
            let signing = Self {
                id: configured.id.clone(),
                algorithm: configured.algorithm,
                key,
                issuer: config.issuer.clone(),
                audience: config.audience.clone(),
            };
            // A key on another curve is read without an error, and fails here.
            signing.encode(&()).map_err(|_| configured.unfit())?;
            return Ok(Some(signing));
        }
        Ok(None)
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Signs a token; also says until when it may be used.
    pub fn sign(&self, new: NewToken, now: Timestamp) -> (String, Timestamp) {
        let expires = now.plus(new.expires_in);
        let claims = Claims {
            iss: self.issuer.clone(),
            aud: Audience::One(self.audience.clone()),
            sub: new.subject,
            exp: seconds(expires).floor(),
            nbf: None,
            iat: None,
            tenant: new.grant.to_string(),
            roles: new.roles.iter().map(|role| role.to_string()).collect(),
            key: new.key.as_ref().map(hex_of_hash),
        };
        (self.encode(&claims).expect("the key has signed before"), expires)
    }

    fn encode<T: Serialize>(&self, claims: &T) -> jsonwebtoken::errors::Result<String> {
        let mut header = Header::new(self.algorithm.of_library());
        header.kid = Some(self.id.clone());
        jsonwebtoken::encode(&header, claims, &self.key)
    }
}

/// A token that is signed to see whether a key can, and that allows nothing any more.
pub(super) fn trial() -> NewToken {
    NewToken {
        subject: "trial".to_owned(),
        grant: TenantGrant::Installation,
        roles: [AccessRole::Viewer].into_iter().collect(),
        expires_in: Duration::ZERO,
        key: None,
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKey({}, {})", self.id, self.algorithm)
    }
}
