//! Which failures are alike: the same code, and the same message once what differs from task to
//! task (numbers, ids, hashes, quoted names) is left out.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::task::Failure;

/// Characters of a message that count.
const PATTERN_CHARS: usize = 200;
/// From this length on a word of hexadecimal digits is taken for an id.
const HEX_WORD: usize = 8;

/// Names what failures have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorGroup(u64);

/// The text does not name a group.
#[derive(Debug, thiserror::Error)]
#[error("not an error group, such as 0123456789abcdef")]
pub struct NotAGroup;

impl ErrorGroup {
    /// The group of a failure.
    pub fn of(failure: &Failure) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(failure.code.as_bytes());
        hasher.update([0]);
        hasher.update(pattern(&failure.message).as_bytes());
        let digest: [u8; 32] = hasher.finalize().into();
        Self(u64::from_be_bytes(*digest.first_chunk().expect("8 of 32 bytes")))
    }

    /// As stores keep it.
    pub const fn to_bits(self) -> i64 {
        self.0.cast_signed()
    }

    /// The group kept as this number.
    pub const fn from_bits(bits: i64) -> Self {
        Self(bits.cast_unsigned())
    }
}

impl fmt::Display for ErrorGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for ErrorGroup {
    type Err = NotAGroup;

    fn from_str(text: &str) -> Result<Self, NotAGroup> {
        let plain = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = u64::from_str_radix(text, 16).ok().filter(|_| plain);
        bits.map(Self).ok_or(NotAGroup)
    }
}

/// A message without what differs from task to task.
pub fn pattern(message: &str) -> String {
    let mut pattern = String::new();
    let mut rest = message.trim();
    while let Some(first) = rest.chars().next() {
        if pattern.chars().count() >= PATTERN_CHARS {
            break;
        }
        let (piece, length) = next_piece(first, rest);
        // Two left-out pieces in a row say no more than one.
        if piece != "#" || !pattern.ends_with('#') {
            pattern.push_str(piece);
        }
        rest = &rest[length..];
    }
    pattern
}

/// What stands for the beginning of the text, and how many bytes of it that is.
fn next_piece(first: char, rest: &str) -> (&str, usize) {
    if let Some(length) = quoted(first, rest) {
        return ("#", length);
    }
    if !first.is_alphanumeric() {
        let length = first.len_utf8();
        return if first.is_whitespace() { (" ", length) } else { (&rest[..length], length) };
    }
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let length = rest.find(|c| !joins(c)).unwrap_or(rest.len());
    let word = rest[..length].trim_end_matches(['-', '_', '.']);
    if varies(word) { ("#", word.len()) } else { (word, word.len()) }
}

/// The length of a quotation at the beginning of the text.
fn quoted(first: char, rest: &str) -> Option<usize> {
    let closing = match first {
        '"' | '\'' | '`' => first,
        _ => return None,
    };
    rest[1..].find(closing).map(|end| end + 2)
}

/// Whether a word is likely to be another one next time.
fn varies(word: &str) -> bool {
    let hex = word.len() >= HEX_WORD && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    hex || word.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn group(message: &str) -> ErrorGroup {
        ErrorGroup::of(&Failure::new("BROKEN", message))
    }

    #[test]
    fn numbers_ids_and_names_do_not_matter() {
        let alike = [
            ("order 17 not found", "order 4711 not found"),
            ("took 1.5 s", "took 20 s"),
            (
                "no task 01920000-0000-7000-8000-000000000000 here",
                "no task 0199ffff-1111-7abc-8000-0123456789ab here",
            ),
            ("commit deadbeef failed", "commit cafebabe failed"),
            ("no user \"ada\"", "no user \"grace hopper\""),
            ("connect 10.0.0.1:80: refused", "connect 192.168.7.22:8080: refused"),
        ];
        for (one, other) in alike {
            assert_eq!(group(one), group(other), "{one} | {}", pattern(one));
        }
    }

    #[test]
    fn words_and_codes_do() {
        assert_ne!(group("order not found"), group("user not found"));
        let other = Failure::new("OTHER", "order not found");
        assert_ne!(group("order not found"), ErrorGroup::of(&other));
        assert_eq!(pattern("it's broken"), "it's broken");
    }

    #[test]
    fn text_round_trips_and_nothing_else_is_read() {
        let group = group("x");
        assert_eq!(group.to_string().parse::<ErrorGroup>().unwrap(), group);
        assert_eq!(ErrorGroup::from_bits(group.to_bits()), group);
        for text in ["", "x", "+123456789abcdef", "0123456789abcdef0"] {
            assert!(text.parse::<ErrorGroup>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_message_has_a_short_pattern(message in ".{0,300}") {
            prop_assert!(pattern(&message).chars().count() <= PATTERN_CHARS + message.len());
        }
    }
}
