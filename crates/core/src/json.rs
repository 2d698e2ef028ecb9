//! JSON text kept as it came: payloads and results are never re-encoded, so big integers, key
//! order and number spelling survive. This file holds the checks that such text must pass.

use sha2::{Digest, Sha256};

use crate::limits::JSON_DEPTH;

/// Valid JSON text can still be something that a reader downstream cannot take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadJson {
    /// Nested deeper than [`JSON_DEPTH`].
    #[error("nested deeper than {JSON_DEPTH} levels")]
    TooDeep,
    /// Holds the character U+0000, which databases and C strings refuse.
    #[error("contains the character U+0000")]
    Nul,
    /// Holds an escape such as `\ud800` without its other half.
    #[error("holds half of a surrogate pair, which is no character")]
    HalfCharacter,
}

/// Checks text that a parser has already accepted as JSON.
pub fn check(text: &str) -> Result<(), BadJson> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_string => at += escape(&bytes[at..])? - 1,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > JSON_DEPTH {
                    return Err(BadJson::TooDeep);
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// The length of the escape that `text` starts with.
fn escape(text: &[u8]) -> Result<usize, BadJson> {
    match code_unit(text) {
        Some(0) => Err(BadJson::Nul),
        Some(0xD800..=0xDBFF) => match code_unit(text.get(6..).unwrap_or_default()) {
            Some(0xDC00..=0xDFFF) => Ok(12),
            _ => Err(BadJson::HalfCharacter),
        },
        Some(0xDC00..=0xDFFF) => Err(BadJson::HalfCharacter),
        Some(_) => Ok(6),
        None => Ok(2),
    }
}

/// The code unit of an escape such as `\u00e9`.
fn code_unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Hashes a JSON value by meaning: key order and white space do not matter, everything else does.
/// Numbers are compared as they are spelled, so that no precision is lost.
///
/// The text must have passed [`check`], which bounds the recursion here.
pub fn hash(text: &str, into: &mut Sha256) {
    let text = text.trim();
    match text.as_bytes().first() {
        Some(b'{') => hash_object(text, into),
        Some(b'[') => hash_array(text, into),
        Some(b'"') => {
            let string: String = serde_json::from_str(text).expect("a checked JSON string");
            into.update(b"s");
            hash_bytes(string.as_bytes(), into);
        }
        _ => {
            into.update(b"v");
            hash_bytes(text.as_bytes(), into);
        }
    }
}

fn hash_object(text: &str, into: &mut Sha256) {
    let fields: std::collections::BTreeMap<String, &serde_json::value::RawValue> =
        serde_json::from_str(text).expect("a checked JSON object");
    into.update(b"{");
    for (key, value) in fields {
        hash_bytes(key.as_bytes(), into);
        hash(value.get(), into);
    }
    into.update(b"}");
}

fn hash_array(text: &str, into: &mut Sha256) {
    let items: Vec<&serde_json::value::RawValue> =
        serde_json::from_str(text).expect("a checked JSON array");
    into.update(b"[");
    for item in items {
        hash(item.get(), into);
    }
    into.update(b"]");
}

/// Length first, so that no two sequences of strings hash alike.
pub fn hash_bytes(bytes: &[u8], into: &mut Sha256) {
    into.update((bytes.len() as u64).to_be_bytes());
    into.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> Vec<u8> {
        let mut hasher = Sha256::new();
        hash(text, &mut hasher);
        hasher.finalize().to_vec()
    }

    #[test]
    fn depth_and_nul_are_found_only_where_they_count() {
        let deep = format!("{}{}", "[".repeat(JSON_DEPTH), "]".repeat(JSON_DEPTH));
        assert_eq!(check(&deep), Ok(()));
        assert_eq!(check(&format!("[{deep}]")), Err(BadJson::TooDeep));
        assert_eq!(check(&format!("\"{}\"", "[".repeat(JSON_DEPTH + 1))), Ok(()));
        assert_eq!(check(r#"{"a":"x\u0000"}"#), Err(BadJson::Nul));
        assert_eq!(check(r#"{"a":"x\\u0000"}"#), Ok(()));
        assert_eq!(check(r#""\"[[""#), Ok(()));
    }

    #[test]
    fn half_characters_are_found_only_where_they_count() {
        for whole in [r#""\ud83d\ude00""#, r#""\\ud800""#, r#""é\u00e9""#, r#""\"\\""#, "{}"] {
            assert_eq!(check(whole), Ok(()), "{whole}");
        }
        let halves = [r#""\ud800""#, r#""\ude00""#, r#""\ud83d\n""#, r#"{"\ud83d\ud83d":1}"#];
        for half in halves.into_iter().chain([r#""\\\ud800""#]) {
            assert_eq!(check(half), Err(BadJson::HalfCharacter), "{half}");
        }
    }

    #[test]
    fn a_hash_sees_meaning_not_spelling() {
        assert_eq!(digest(r#"{"a":1,"b":[true]}"#), digest(" {\"b\" : [ true ],\n\"a\":1}"));
        assert_eq!(digest(r#""\u0061""#), digest(r#""a""#));
        for other in [r#"{"a":1}"#, r#"{"a":1,"b":[false]}"#, r#"{"a":1.0,"b":[true]}"#, "null"] {
            assert_ne!(digest(r#"{"a":1,"b":[true]}"#), digest(other), "{other}");
        }
    }
}
