//! Which headers a task of the type `http` may send. The submit refuses others, and so does the
//! handler, which also sees payloads that were rendered or edited later.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::submit::FieldError;

/// The type whose payload has these headers.
pub const TYPE: &str = "http";

/// Headers that frame the message, belong to one connection, or identify the task.
const RESERVED: [&str; 14] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "idempotency-key",
    "keep-alive",
    "te",
    "trailer",
    "trailers",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
];
const RESERVED_PREFIXES: [&str; 2] = ["duly-", "proxy-"];

/// Checks one header; the error completes a sentence about it.
pub fn check(name: &str, value: &str) -> Result<(), &'static str> {
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err("has a bad name");
    }
    let lower = name.to_ascii_lowercase();
    let is_reserved = RESERVED.contains(&lower.as_str());
    if is_reserved || RESERVED_PREFIXES.iter().any(|start| lower.starts_with(start)) {
        return Err("cannot be set");
    }
    if !value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)) {
        return Err("has a value with characters other than printable ASCII, such as a line break");
    }
    Ok(())
}

/// Checks the headers of a payload. Its other parts, and payloads of another shape, are for the
/// handler, which may be one of the user's own.
pub(crate) fn check_payload(payload: &str) -> Result<(), FieldError> {
    #[derive(Deserialize)]
    struct Payload {
        #[serde(default)]
        headers: BTreeMap<String, Value>,
    }
    let Ok(payload) = serde_json::from_str::<Payload>(payload) else { return Ok(()) };
    for (name, value) in &payload.headers {
        check(name, value.as_str().unwrap_or_default()).map_err(|why| {
            let FieldError { pointer, .. } = FieldError::of(name, "", "");
            let pointer = format!("/payload/headers{pointer}");
            FieldError { pointer, code: "INVALID_HEADER", detail: why.to_owned() }
        })?;
    }
    Ok(())
}

/// A character of a name, as RFC 9110 has it.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_judged_by_name_and_value() {
        for (name, value) in [("X-One", "1"), ("accept", "*/*;\tq=1"), ("Authorization", "")] {
            assert_eq!(check(name, value), Ok(()), "{name}");
        }
        for name in
            ["", "a b", "a:b", "a\r\nb", "é", "a\0", "Host", "CONNECTION", "Duly-X", "proxy-x"]
        {
            assert!(check(name, "1").is_err(), "{name:?}");
        }
        for value in ["a\r\nb: c", "a\n", "\r", "\0", "é", "\u{7f}"] {
            assert!(check("x", value).is_err(), "{value:?}");
        }
    }

    #[test]
    fn a_payload_is_refused_for_its_headers_alone() {
        for fine in ["null", "7", r#"{"headers":7}"#, r#"{"url":7}"#, r#"{"headers":{"a":7}}"#] {
            assert_eq!(check_payload(fine), Ok(()), "{fine}");
        }
        let bad = check_payload(r#"{"headers":{"x/y":"1"}}"#).unwrap_err();
        assert_eq!((bad.pointer.as_str(), bad.code), ("/payload/headers/x~1y", "INVALID_HEADER"));
        assert!(check_payload(r#"{"headers":{"x":"a\r\nb"}}"#).is_err());
    }
}
