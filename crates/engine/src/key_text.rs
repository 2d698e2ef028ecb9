//! The text of an API key: `duly_` and 256 random bits in base64url. A store keeps only its hash.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use duly_core::key::KeyHash;
use duly_core::ports::random::Random;
use sha2::{Digest as _, Sha256};

/// What the text of every key begins with, so that programs find leaked keys.
pub const PREFIX: &str = "duly_";
/// Random bytes of a key.
const BYTES: usize = 32;

/// The text of a key, which is a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText(String);

impl KeyText {
    /// A new one. The source of randomness must be unpredictable.
    pub fn generate(random: &dyn Random) -> Self {
        let mut numbers = [0; BYTES / 8];
        random.fill(&mut numbers);
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// What a caller sent, if it has the form of a key.
    pub fn parse(text: &str) -> Option<Self> {
        let bits = text.strip_prefix(PREFIX)?;
        // Nothing longer is decoded.
        let is_long = bits.len() > BYTES * 2;
        let bytes = (!is_long).then(|| URL_SAFE_NO_PAD.decode(bits).ok()).flatten()?;
        (bytes.len() == BYTES).then(|| Self(text.to_owned()))
    }

    /// What stores know it by.
    pub fn hash(&self) -> KeyHash {
        Sha256::digest(&self.0).into()
    }

    /// The text, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::OsRandom;

    #[test]
    fn a_new_key_reads_back() {
        let random = OsRandom::new();
        let (one, other) = (KeyText::generate(&random), KeyText::generate(&random));
        assert_eq!(one.reveal().len(), PREFIX.len() + 43);
        assert_eq!(KeyText::parse(one.reveal()).as_ref(), Some(&one));
        assert_ne!(one.hash(), other.hash());
        assert!(!format!("{one:?}").contains(one.reveal()));
    }

    #[test]
    fn what_has_not_the_form_of_a_key_is_none() {
        let key = KeyText::generate(&OsRandom::new());
        let bits = key.reveal().strip_prefix(PREFIX).unwrap();
        let long = format!("{PREFIX}{}", "A".repeat(100_000));
        for text in [
            "",
            PREFIX,
            bits,
            &format!("DULY_{bits}"),
            &format!("{PREFIX}{}", &bits[1..]),
            &format!("{PREFIX}{bits}A"),
            &format!("{PREFIX}{bits}="),
            &format!(" {PREFIX}{bits}"),
            &long,
        ] {
            assert_eq!(KeyText::parse(text), None, "{text:.60}");
        }
    }
}
