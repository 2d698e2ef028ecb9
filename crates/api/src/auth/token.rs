//! What a token claims, and the checks of its header and claims. The signature comes first: nothing of
//! a token is believed before it.

use std::time::Duration;

use duly_core::access::{AccessRoles, TenantGrant};
use duly_core::key::KeyHash;
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

/// Bytes of the longest token that is looked at.
pub(super) const TOKEN_BYTES: usize = 8 * 1024;
/// Characters of the longest subject: it is written to the audit log.
pub(super) const SUBJECT_CHARS: usize = 200;
/// Seconds by which the clocks of issuer and server may differ.
const LEEWAY_SECONDS: f64 = 60.0;
/// Seconds after which a time is no time any more: the year 9999.
const LAST_SECOND: f64 = 253_402_300_799.0;

/// The claims of a token, as they are written in it.
#[derive(Serialize, Deserialize)]
pub(super) struct Claims {
    pub(super) iss: String,
    pub(super) aud: Audience,
    pub(super) sub: String,
    /// Seconds since 1970; a text is refused.
    #[serde(serialize_with = "whole")]
    pub(super) exp: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) nbf: Option<f64>,
    #[serde(default, skip_serializing)]
    pub(super) iat: Option<f64>,
    /// A tenant, or `*` for the installation.
    pub(super) tenant: String,
    pub(super) roles: Vec<String>,
    /// The hash of the API key that the token was exchanged for: the key goes on to decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
}

/// Without a fraction, as other programs expect it.
fn whole<S: Serializer>(seconds: &f64, to: S) -> Result<S::Ok, S::Error> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it comes from a timestamp, which lies between 1970 and 9999"
    )]
    to.serialize_u64(*seconds as u64)
}

/// One audience, or several.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Audience {
    fn contains(&self, audience: &str) -> bool {
        match self {
            Self::One(one) => one == audience,
            Self::Several(some) => some.iter().any(|one| one == audience),
        }
    }
}

/// A token whose signature and claims were checked. Its time still counts with every request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CheckedToken {
    /// The claim `sub`.
    pub(crate) subject: String,
    /// For whose objects it is.
    pub(crate) grant: TenantGrant,
    /// What it allows.
    pub(crate) roles: AccessRoles,
    /// The API key that it was exchanged for.
    pub(crate) key: Option<KeyHash>,
    not_before: f64,
    expires: f64,
}

impl CheckedToken {
    /// Checks the claims; `None` if anything is wrong, and nobody is told what.
    pub(super) fn new(claims: Claims, issuer: &str, audience: &str) -> Option<Self> {
        let is_time = |seconds: f64| (0.0..=LAST_SECOND).contains(&seconds);
        let times = [Some(claims.exp), claims.nbf, claims.iat];
        let is_subject = (1..=SUBJECT_CHARS).contains(&claims.sub.chars().count())
            && !claims.sub.chars().any(char::is_control);
        let is_ours = claims.iss == issuer && claims.aud.contains(audience);
        if !is_ours || !is_subject || !times.into_iter().flatten().all(is_time) {
            return None;
        }
        let roles: Result<AccessRoles, _> = claims.roles.iter().map(|role| role.parse()).collect();
        let key = match claims.key {
            Some(text) => Some(hash_of_hex(&text)?),
            None => None,
        };
        Some(Self {
            subject: claims.sub,
            grant: claims.tenant.parse().ok()?,
            roles: roles.ok().filter(|roles| !roles.is_empty())?,
            key,
            not_before: claims.nbf.unwrap_or_default(),
            expires: claims.exp,
        })
    }

    /// Whether it may be used now.
    pub(super) fn is_current(&self, now: Timestamp) -> bool {
        let now = seconds(now);
        now < self.expires + LEEWAY_SECONDS && now >= self.not_before - LEEWAY_SECONDS
    }

    /// For how long it may be used from now on.
    pub(super) fn time_left(&self, now: Timestamp) -> Duration {
        let left = self.expires + LEEWAY_SECONDS - seconds(now);
        Duration::try_from_secs_f64(left).unwrap_or_default()
    }

    /// Seconds until it expires, without the leeway.
    pub(crate) fn seconds_left(&self, now: Timestamp) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the time was checked to lie before the year 10000"
        )]
        let left = (self.expires - seconds(now)).max(0.0) as u64;
        left
    }
}

/// Seconds since 1970.
pub(super) fn seconds(at: Timestamp) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds up to the year 9999 are exact")]
    let millis = at.millis() as f64;
    millis / 1000.0
}

/// A hash as text.
pub(super) fn hex_of_hash(hash: &KeyHash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash_of_hex(text: &str) -> Option<KeyHash> {
    let mut hash = KeyHash::default();
    if text.len() != 2 * hash.len() || !text.is_ascii() {
        return None;
    }
    for (place, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_survives_its_text() {
        let hash: KeyHash = std::array::from_fn(|n| u8::try_from(n * 8).unwrap());
        assert_eq!(hash_of_hex(&hex_of_hash(&hash)), Some(hash));
        for bad in ["", "00", "é", &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(hash_of_hex(bad), None, "{bad}");
        }
    }
}
