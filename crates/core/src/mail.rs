//! Addresses and subjects of mails. The submit refuses a task of the type `email` whose addresses or
//! subject cannot be sent as they are, and so does the handler, which also sees payloads that were
//! rendered or edited later. What passes has no line break: a mail has the recipients that it names.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::limits::{MAIL_ADDRESS_CHARS, MAIL_NAME_CHARS, MAIL_RECIPIENTS, MAIL_SUBJECT_CHARS};
use crate::submit::FieldError;

/// The type whose payload is a mail.
pub const TYPE: &str = "email";

/// Characters of the part before the `@`, and of one part of the domain, as RFC 5321 has it.
const LOCAL_CHARS: usize = 64;
const LABEL_CHARS: usize = 63;

/// An address, perhaps with a name: `ada@example.com` or `Ada Lovelace <ada@example.com>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    name: Option<String>,
    local: String,
    domain: String,
}

/// A text is no [`Mailbox`]; the error completes a sentence about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadMailbox(&'static str);

impl Mailbox {
    /// The name, if there is one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// What stands before the `@`.
    pub fn local(&self) -> &str {
        &self.local
    }

    /// What stands behind it.
    pub fn domain(&self) -> &str {
        &self.domain
    }
}

impl FromStr for Mailbox {
    type Err = BadMailbox;

    fn from_str(text: &str) -> Result<Self, BadMailbox> {
        if text.chars().any(char::is_control) {
            return Err(BadMailbox("holds a control character, such as a line break"));
        }
        let (name, address) = match text.split_once('<') {
            None => (None, text),
            Some((name, rest)) => {
                let bad = BadMailbox("has no `>` at its end");
                (Some(name_of(name.trim())?), rest.strip_suffix('>').ok_or(bad)?)
            }
        };
        if address.len() > MAIL_ADDRESS_CHARS {
            return Err(BadMailbox("is longer than an address may be"));
        }
        let bad = BadMailbox("is not an address such as `ada@example.com`");
        let (local, domain) = address.rsplit_once('@').ok_or(bad)?;
        if !is_local(local) || !is_domain(domain) {
            return Err(bad);
        }
        let name = name.filter(|name| !name.is_empty());
        Ok(Self { name, local: local.to_owned(), domain: domain.to_owned() })
    }
}

impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} <{}@{}>", self.local, self.domain),
            None => write!(f, "{}@{}", self.local, self.domain),
        }
    }
}

/// The name before an address, which may stand in quotes.
fn name_of(text: &str) -> Result<String, BadMailbox> {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let name = inner.unwrap_or(text);
    if name.chars().count() > MAIL_NAME_CHARS {
        return Err(BadMailbox("has a name that is too long"));
    }
    if name.contains(['<', '>', '"', '\\']) {
        return Err(BadMailbox("has a name with `<`, `>`, `\"` or `\\`"));
    }
    Ok(name.to_owned())
}

/// Dot-separated atoms of RFC 5322. Quoted forms are refused: servers read them differently.
fn is_local(text: &str) -> bool {
    let is_atom = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte);
    text.len() <= LOCAL_CHARS
        && text.split('.').all(|atom| !atom.is_empty() && atom.bytes().all(is_atom))
}

/// Names of letters, digits and hyphens; other scripts in their ASCII form (`xn--…`).
fn is_domain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    text.split('.').all(|label| {
        (1..=LABEL_CHARS).contains(&label.len())
            && label.bytes().all(is_plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

/// Checks a subject; the error completes a sentence about it.
pub fn check_subject(text: &str) -> Result<(), &'static str> {
    if text.chars().any(char::is_control) {
        return Err("holds a control character, such as a line break");
    }
    if text.chars().count() > MAIL_SUBJECT_CHARS {
        return Err("is too long");
    }
    Ok(())
}

/// Checks the addresses and the subject of a payload. Its other parts, and payloads of another shape,
/// are for the handler, which may be one of the user's own.
pub(crate) fn check_payload(payload: &str, is_rendered: bool) -> Vec<FieldError> {
    let Ok(Value::Object(payload)) = serde_json::from_str(payload) else { return Vec::new() };
    let mut errors = Vec::new();
    let mut recipients = 0;
    // What an expression becomes is for the handler.
    let is_given = |text: &&str| !(is_rendered && text.contains("{{"));
    for field in ["to", "cc"] {
        let Some(value) = payload.get(field) else { continue };
        let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        recipients += list.len();
        for (index, item) in list.iter().enumerate() {
            let Some(text) = item.as_str().filter(is_given) else { continue };
            let Err(bad) = text.parse::<Mailbox>() else { continue };
            let place = if value.is_array() { format!("/{index}") } else { String::new() };
            let pointer = format!("/payload/{field}{place}");
            errors.push(FieldError { pointer, code: "INVALID_ADDRESS", detail: bad.to_string() });
        }
    }
    if recipients > MAIL_RECIPIENTS {
        let detail = format!("names {recipients} recipients; the limit is {MAIL_RECIPIENTS}");
        let pointer = "/payload/to".to_owned();
        errors.push(FieldError { pointer, code: "TOO_MANY", detail });
    }
    let subject = payload.get("subject").and_then(Value::as_str).filter(is_given);
    if let Some(Err(why)) = subject.map(check_subject) {
        let (pointer, detail) = ("/payload/subject".to_owned(), why.to_owned());
        errors.push(FieldError { pointer, code: "INVALID_HEADER", detail });
    }
    errors
}

#[cfg(test)]
mod tests;
