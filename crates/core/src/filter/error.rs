//! Why a text is no filter: where, which term, and what is allowed.

use std::fmt;

use super::{FILTER_CHARS, KeyNames};
use crate::state::Status;

/// Characters of a term that an error repeats.
const SHOWN_CHARS: usize = 64;

/// A text that is no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct BadFilter {
    /// Where the term begins, in bytes.
    pub at: usize,
    /// The term, cut if it is long.
    pub term: String,
    /// What is wrong with it.
    pub why: Why,
}

/// What is wrong with a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The text is longer than any filter needs to be.
    TooLong,
    /// It holds U+0000, which no task does.
    Nul,
    /// It has no colon.
    NoKey,
    /// Its key does not exist.
    UnknownKey,
    /// Its quotation marks are not around a whole value.
    Quotes,
    /// Its key was there before.
    Doubled {
        /// The key.
        key: String,
    },
    /// Its value is not one that its key takes.
    Value {
        /// The key.
        key: &'static str,
        /// What would be allowed.
        wanted: &'static str,
    },
    /// It names a state in which no task can be meant here.
    Status {
        /// The states that are allowed.
        allowed: Vec<Status>,
    },
}

impl BadFilter {
    pub(super) fn new(at: usize, term: &str, why: Why) -> Self {
        let term = match term.char_indices().nth(SHOWN_CHARS) {
            Some((end, _)) => format!("{}…", &term[..end]),
            None => term.to_owned(),
        };
        Self { at, term, why }
    }
}

impl fmt::Display for BadFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, term, why } = self;
        write!(f, "`{term}` at byte {at}")?;
        match why {
            Why::TooLong => write!(f, ": a filter has at most {FILTER_CHARS} characters"),
            Why::Nul => f.write_str(": no filter holds U+0000"),
            Why::NoKey => write!(f, " is not of the form key:value; keys are {KeyNames}"),
            Why::UnknownKey => write!(f, " has no known key; keys are {KeyNames}"),
            Why::Quotes => f.write_str(
                r#": quotation marks stand around a whole value, as in error:"not found"; one inside is written \" and a backslash there \\"#,
            ),
            Why::Doubled { key } => write!(f, ": {key} is given twice"),
            Why::Value { key, wanted } => write!(f, ": {key} takes {wanted}"),
            Why::Status { allowed } => {
                write!(f, ": status takes only {} here", any_of(allowed))
            }
        }
    }
}

/// "A", "A or B", "A, B or C".
fn any_of(statuses: &[Status]) -> String {
    let names: Vec<_> = statuses.iter().map(|status| status.as_str()).collect();
    match names.split_last() {
        Some((last, rest @ [_, ..])) => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
