//! Values of parameters, as the payload spells them: numbers keep every digit.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;

/// One value: any JSON.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct Parameter(Box<RawValue>);

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind<'a> {
    Null,
    Bool(bool),
    /// As it is spelled.
    Number(&'a str),
    Text(String),
    Array(Vec<Parameter>),
    Object,
}

impl PartialEq for Parameter {
    fn eq(&self, other: &Self) -> bool {
        self.json() == other.json()
    }
}

impl Parameter {
    /// As JSON text.
    pub(super) fn json(&self) -> &str {
        self.0.get()
    }

    /// What it is.
    pub(super) fn kind(&self) -> Kind<'_> {
        let json = self.json();
        let text = || serde_json::from_str(json).expect("a string was parsed before");
        match json.as_bytes().first() {
            Some(b'n') => Kind::Null,
            Some(b't') => Kind::Bool(true),
            Some(b'f') => Kind::Bool(false),
            Some(b'"') => Kind::Text(text()),
            Some(b'[') => {
                Kind::Array(serde_json::from_str(json).expect("an array was parsed before"))
            }
            Some(b'{') => Kind::Object,
            _ => Kind::Number(json),
        }
    }
}

/// Bytes in base64.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(text).ok()
}

/// Bytes as base64, as a JSON string.
pub(super) fn base64(bytes: &[u8]) -> String {
    format!("\"{}\"", BASE64_STANDARD.encode(bytes))
}
