//! Between text and terms: where a term ends, what is quoted, and how to write it again.

use std::fmt;

use super::LABEL;
use super::error::{BadFilter, Why};

/// One term of a filter.
#[derive(Debug)]
pub(super) struct Term<'a> {
    /// Where it begins, in bytes.
    pub(super) at: usize,
    pub(super) text: &'a str,
    /// What stands before the colon, as it was written.
    pub(super) key: &'a str,
    /// The label that the key names.
    pub(super) label: Option<String>,
    pub(super) value: String,
    /// Whether the value stood in quotes.
    pub(super) quoted: bool,
}

/// The terms of a text, up to the first that cannot be read.
pub(super) fn split(text: &str) -> impl Iterator<Item = Result<Term<'_>, BadFilter>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &text[at..];
        at += rest.len() - rest.trim_start().len();
        let start = at;
        let length = length(&text[start..]);
        at += length.unwrap_or(text.len() - start);
        let term = &text[start..at];
        let bad = |why| BadFilter::new(start, term, why);
        match length {
            Some(0) => None,
            None => Some(Err(bad(Why::Quotes))),
            Some(_) => Some(read(start, term).map_err(bad)),
        }
    })
}

/// How many bytes the first term has; nothing if a quotation in it does not end.
fn length(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => return Some(at),
            _ => {}
        }
    }
    (!quoted).then_some(text.len())
}

fn read(at: usize, text: &str) -> Result<Term<'_>, Why> {
    // The key of a label may be quoted, and then have a colon of its own.
    let quoted_key = text.strip_prefix(LABEL).filter(|key| key.starts_with('"'));
    let colon = match quoted_key.and_then(closing) {
        Some(end) => Some(LABEL.len() + end + 1),
        None => text.find(':'),
    };
    let (key, value) = colon.and_then(|colon| text.split_at_checked(colon)).ok_or(Why::NoKey)?;
    let value = value.strip_prefix(':').ok_or(Why::Quotes)?;
    let label = key.strip_prefix(LABEL).map(|label| unquote(label).ok_or(Why::Quotes));
    let label = label.transpose()?;
    let quoted = value.starts_with('"');
    let value = unquote(value).ok_or(Why::Quotes)?;
    Ok(Term { at, text, key, label, value, quoted })
}

/// Where the quotation at the beginning of a text ends.
fn closing(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at),
            _ => {}
        }
    }
    None
}

/// What a text means that may be quoted; nothing if it is quoted in part only.
fn unquote(text: &str) -> Option<String> {
    if !text.starts_with('"') {
        return (!text.contains('"')).then(|| text.to_owned());
    }
    if closing(text)? != text.len() - 1 {
        return None;
    }
    let mut plain = String::new();
    let mut inside = text[1..text.len() - 1].chars();
    while let Some(c) = inside.next() {
        plain.push(match c {
            '\\' => inside.next().filter(|c| matches!(c, '"' | '\\'))?,
            c => c,
        });
    }
    Some(plain)
}

/// Writes a text bare where that reads back, and in quotes where it must be.
pub(super) struct Bare<'a> {
    text: &'a str,
    is_key: bool,
}

impl<'a> Bare<'a> {
    pub(super) fn key(text: &'a str) -> Self {
        Self { text, is_key: true }
    }

    pub(super) fn value(text: &'a str) -> Self {
        Self { text, is_key: false }
    }
}

impl fmt::Display for Bare<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let special = |c: char| c.is_whitespace() || c == '"' || (self.is_key && c == ':');
        if !self.text.is_empty() && !self.text.contains(special) {
            return f.write_str(self.text);
        }
        let escaped = self.text.replace('\\', r"\\").replace('"', r#"\""#);
        write!(f, "\"{escaped}\"")
    }
}
