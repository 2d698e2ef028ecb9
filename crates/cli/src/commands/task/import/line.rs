//! Parses one line of an import into a request, without an intermediate tree. The payload stays
//! unchanged, byte for byte.

use std::fmt;

use duly_client::wire::{Problem, SubmitRequest};
use duly_core::limits::BODY_BYTES;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

/// Parses a line that is not empty.
pub(super) fn parse(text: &[u8]) -> Result<SubmitRequest, Box<Problem>> {
    // serde would also read the fields of a request from an array.
    if text.first() != Some(&b'{') {
        let json: serde_json::Result<&RawValue> = serde_json::from_slice(text);
        return Err(match json {
            Ok(_) => invalid("must be an object, with the fields of a task"),
            Err(error) => malformed(&error),
        });
    }
    let error = match serde_json::from_slice(text) {
        Ok(request) => return Ok(request),
        Err(error) => error,
    };
    match error.classify() {
        Category::Data => normalized(text).ok_or_else(|| invalid(&parser_message(&error))),
        Category::Syntax | Category::Eof | Category::Io => Err(malformed(&error)),
    }
}

/// The problem of a line that is too long.
pub(super) fn too_long() -> Box<Problem> {
    too_large(&format!("the line is longer than {BODY_BYTES} bytes"))
}

/// The problem of a line that is too large to send.
pub(super) fn too_large(why: &str) -> Box<Problem> {
    problem(413, "BODY_TOO_LARGE", "The body is too large", why.to_owned())
}

/// The request of a line that the server accepts although the wire type does not: `null` fields, and
/// whole numbers such as `3.0`, which some programs write.
fn normalized(text: &[u8]) -> Option<SubmitRequest> {
    let pairs = serde_json::Deserializer::from_slice(text).deserialize_map(Pairs).ok()?;
    let mut object = String::with_capacity(text.len());
    for (name, value) in pairs {
        if value.get() == "null" {
            continue;
        }
        object.push(if object.is_empty() { '{' } else { ',' });
        object += &serde_json::to_string(&name).ok()?;
        object.push(':');
        match whole(&name, value.get()) {
            Some(number) => object += &number,
            None => object += value.get(),
        }
    }
    object.push('}');
    serde_json::from_str(&object).ok()
}

/// A whole number that is written with a fraction.
fn whole(name: &str, text: &str) -> Option<String> {
    let number: f64 = text.parse().ok().filter(|_| matches!(name, "priority" | "retries"))?;
    (number.fract() == 0.0 && (0.0..1e9).contains(&number)).then(|| format!("{number:.0}"))
}

/// The fields of an object in order, with duplicates.
struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}

fn malformed(error: &serde_json::Error) -> Box<Problem> {
    problem(400, "MALFORMED_JSON", "The body is not valid JSON", parser_message(error))
}

fn invalid(detail: &str) -> Box<Problem> {
    problem(422, "INVALID_FIELDS", "Some fields are not valid", detail.to_owned())
}

/// The parser's message without its line number, which is not that of the file.
fn parser_message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&position) {
        Some(text) => format!("{text} at column {}", error.column()),
        None => text,
    }
}

/// A problem in the server's format; the server never sees the line.
fn problem(status: u16, code: &str, title: &str, detail: String) -> Box<Problem> {
    Box::new(Problem {
        r#type: format!("urn:duly:error:{code}"),
        title: title.to_owned(),
        status,
        code: code.to_owned(),
        detail,
        request_id: None,
        errors: Vec::new(),
        candidates: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_pass_byte_for_byte() {
        let text = r#"{"payload": {"b": 123456789012345678901234567890, "a":1.0e2},"type":"x"}"#;
        let request = parse(text.as_bytes()).unwrap();
        let payload = request.payload.unwrap();
        assert_eq!(payload.get(), r#"{"b": 123456789012345678901234567890, "a":1.0e2}"#);
    }

    #[test]
    fn what_other_programs_spell_otherwise_is_read() {
        let text = r#"{"type":"x","priority":7.0,"retries":3e0,"labels":null,"dependencies":null,
            "payload":{"n":3.0}}"#;
        let request = parse(text.as_bytes()).unwrap();
        assert_eq!((request.priority, request.retries), (Some(7), Some(3)));
        assert_eq!(request.payload.unwrap().get(), r#"{"n":3.0}"#);
    }

    #[test]
    fn bad_lines_say_what_is_wrong_and_where() {
        for (text, code, detail) in [
            ("no json", "MALFORMED_JSON", "at column"),
            (r#"{"type":"x""#, "MALFORMED_JSON", "EOF"),
            (r#"{"type":"x"} {}"#, "MALFORMED_JSON", "trailing"),
            (r#"["x"]"#, "INVALID_FIELDS", "an object"),
            ("7", "INVALID_FIELDS", "an object"),
            ("{}", "INVALID_FIELDS", "missing field `type`"),
            (r#"{"type":"x","nonsense":1}"#, "INVALID_FIELDS", "unknown field `nonsense`"),
            (r#"{"type":"x","type":"y"}"#, "INVALID_FIELDS", "duplicate field `type`"),
            (r#"{"type":"x","priority":1.5}"#, "INVALID_FIELDS", "expected u8"),
            (r#"{"type":"x","type":"y","labels":null}"#, "INVALID_FIELDS", "duplicate"),
        ] {
            let problem = parse(text.as_bytes()).unwrap_err();
            assert_eq!(problem.code, code, "{text}: {problem}");
            assert!(problem.detail.contains(detail), "{text}: {problem}");
            assert!(!problem.detail.contains("line 1"), "{text}: {problem}");
        }
        assert_eq!(parse(b"{\"type\":\"\xff\"}").unwrap_err().code, "MALFORMED_JSON");
    }
}
