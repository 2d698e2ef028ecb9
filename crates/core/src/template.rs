//! Payloads with expressions such as `{{ parents.fetch.result.url }}`, which are rendered when a lease
//! is handed out.
//!
//! Only strings that are values are looked at; all other text of a payload stays byte for byte. A
//! string that consists of one expression becomes the expression's value, of whatever type. Values of
//! parents are copied as they are spelled, and nothing that was inserted is rendered again.
//!
//! There are expressions alone, no statements: nothing can loop, and what an expression can make of
//! its input is bounded by its length, its fuel and the size of the result.

mod expression;
mod scan;
mod value;

use std::sync::Arc;

use crate::json;
use crate::limits::PAYLOAD_BYTES;
use crate::submit::FieldError;
use crate::task::Failure;

use self::expression::{Flaw, Piece, Scope};
use self::scan::Scanner;

/// The code of a task whose payload could not be rendered.
pub const TEMPLATE: &str = "TEMPLATE";

/// Checks the expressions of a payload, which is JSON text.
pub fn check(payload: &str) -> Result<(), FieldError> {
    let mut scanner = Scanner::new(payload);
    while let Some(token) = scanner.next_value() {
        let Some(text) = unescape(&payload[token]) else { continue };
        if let Err(Flaw { at, detail }) = expression::check(&text) {
            let column = text.get(..at).unwrap_or(&text).chars().count() + 1;
            let pointer = format!("/payload{}", scanner.pointer());
            let detail = format!("at column {column}: {detail}");
            return Err(FieldError { pointer, code: "INVALID_TEMPLATE", detail });
        }
    }
    Ok(())
}

/// Whether a payload may hold expressions at all: most do not, and need no closer look.
pub fn may_hold_expressions(payload: &str) -> bool {
    payload.contains("{{") || payload.contains("\\u007")
}

/// Renders a payload. `parents` is a JSON object.
pub fn render(payload: &str, parents: &str) -> Result<Arc<str>, Failure> {
    let scope = Scope::new(parents);
    let mut scanner = Scanner::new(payload);
    let (mut out, mut copied) = (String::with_capacity(payload.len()), 0);
    while let Some(token) = scanner.next_value() {
        let Some(text) = unescape(&payload[token.clone()]) else { continue };
        out.push_str(&payload[copied..token.start]);
        copied = token.end;
        let failed = |flaw: Flaw| {
            let detail = format!("payload{}: {}", scanner.pointer(), flaw.detail);
            Failure::new(TEMPLATE, detail)
        };
        replace(&text, &scope, &mut out).map_err(failed)?;
        if out.len() > PAYLOAD_BYTES {
            return Err(too_large());
        }
    }
    out.push_str(&payload[copied..]);
    if out.len() > PAYLOAD_BYTES {
        return Err(too_large());
    }
    json::check(&out).map_err(|bad| Failure::new(TEMPLATE, format!("the payload is {bad}")))?;
    Ok(out.into())
}

/// Writes what a string becomes.
fn replace(text: &str, scope: &Scope, out: &mut String) -> Result<(), Flaw> {
    let pieces = expression::split(text)?;
    if let [Piece::Expression { source, at }] = pieces.as_slice() {
        return scope.json(source, *at, out);
    }
    let mut plain = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => plain.push_str(text),
            Piece::Expression { source, at } => scope.text(source, at, &mut plain)?,
        }
        if plain.len() > PAYLOAD_BYTES {
            return Err(Flaw::new(0, "it becomes too large"));
        }
    }
    out.push_str(&value::quote(&plain));
    Ok(())
}

fn too_large() -> Failure {
    Failure::new(TEMPLATE, format!("the payload becomes larger than {PAYLOAD_BYTES} bytes"))
}

/// What a JSON string means, if it may hold an expression.
fn unescape(token: &str) -> Option<String> {
    let marked = token.contains(['{', '\\']);
    let text: String = marked.then(|| serde_json::from_str(token).ok())??;
    expression::has_marks(&text).then_some(text)
}

#[cfg(test)]
mod tests;
