//! The language of filters, the same in API, CLI and dashboard: terms such as `queue:mail`,
//! separated by spaces, which must all hold.
//!
//! To add a key: give [`Key`] a variant, a row in [`KEYS`] and an arm in `Filter::put`.

use std::fmt;
use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

use crate::error_group::ErrorGroup;
use crate::name::{QueueName, TypeName};
use crate::ports::store::DeadFilter;
use crate::state::Status;
use crate::time::Timestamp;

/// Characters of a filter: parsing must stay cheap.
const FILTER_CHARS: usize = 1_000;
/// Characters of a term that an error repeats.
const SHOWN_CHARS: usize = 64;

/// What a filter asks for; everything when empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this queue.
    pub queue: Option<QueueName>,
    /// Of this type.
    pub task_type: Option<TypeName>,
    /// With an error of this group.
    pub group: Option<ErrorGroup>,
    /// At this instant or later.
    pub since: Option<Timestamp>,
    /// Before this instant.
    pub until: Option<Timestamp>,
}

/// Why a text is no filter: which term, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFilter {
    /// The text is longer than any filter needs to be.
    #[error("a filter has at most {FILTER_CHARS} characters")]
    TooLong,
    /// A term has no colon.
    #[error("`{term}` is not of the form key:value; keys are {KeyNames}")]
    NoKey {
        /// The term.
        term: String,
    },
    /// A term's key does not exist.
    #[error("`{term}` has no known key; keys are {KeyNames}")]
    UnknownKey {
        /// The term.
        term: String,
    },
    /// A key is there twice.
    #[error("`{key}` is given twice")]
    Doubled {
        /// The key.
        key: &'static str,
    },
    /// A term's value is not one that its key takes.
    #[error("`{term}`: {key} takes {wanted}")]
    Value {
        /// The term.
        term: String,
        /// Its key.
        key: &'static str,
        /// What would be allowed.
        wanted: &'static str,
    },
}

/// What a term can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Queue,
    Type,
    Group,
    Since,
    Until,
    Status,
}

const NAME: &str = "a name that matches [a-z0-9][a-z0-9._-]{0,99}";
const INSTANT: &str = "a time ago such as 24h, 7d or PT24H, or an instant such as \
                       2030-01-31T08:00:00Z";

/// Every key, how it is spelled and what it takes.
const KEYS: [(Key, &str, &str); 6] = [
    (Key::Queue, "queue", NAME),
    (Key::Type, "type", NAME),
    (Key::Group, "group", "an error group such as 0123456789abcdef"),
    (Key::Since, "since", INSTANT),
    (Key::Until, "until", INSTANT),
    (Key::Status, "status", "FAILED"),
];

/// Writes the keys for people.
struct KeyNames;

impl fmt::Display for KeyNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&KEYS.map(|(_, name, _)| name).join(", "))
    }
}

impl Filter {
    /// Reads a filter; `now` is what its relative times refer to.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, BadFilter> {
        if text.len() > FILTER_CHARS {
            return Err(BadFilter::TooLong);
        }
        let mut filter = Self::default();
        let mut seen = Vec::new();
        for term in text.split_whitespace() {
            let shown = || shorten(term);
            let Some((name, value)) = term.split_once(':') else {
                return Err(BadFilter::NoKey { term: shown() });
            };
            let Some((key, name, wanted)) = KEYS.into_iter().find(|(_, known, _)| *known == name)
            else {
                return Err(BadFilter::UnknownKey { term: shown() });
            };
            if seen.contains(&key) {
                return Err(BadFilter::Doubled { key: name });
            }
            seen.push(key);
            if filter.put(key, value, now).is_none() {
                return Err(BadFilter::Value { term: shown(), key: name, wanted });
            }
        }
        Ok(filter)
    }

    /// Takes one value; nothing if the key does not take it.
    fn put(&mut self, key: Key, value: &str, now: Timestamp) -> Option<()> {
        match key {
            Key::Queue => self.queue = Some(QueueName::new(value).ok()?),
            Key::Type => self.task_type = Some(TypeName::new(value).ok()?),
            Key::Group => self.group = Some(value.parse().ok()?),
            Key::Since => self.since = Some(instant(value, now)?),
            Key::Until => self.until = Some(instant(value, now)?),
            // All that can be filtered is failed; people may say so.
            Key::Status => (value == Status::Failed.as_str()).then_some(())?,
        }
        Some(())
    }
}

impl From<Filter> for DeadFilter {
    fn from(filter: Filter) -> Self {
        let Filter { queue, task_type, group, since, until } = filter;
        Self { queue, task_type, group, since, until }
    }
}

/// An instant, or how long ago it was. One before 1970 becomes its beginning.
fn instant(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Ok(instant) = Timestamp::parse(text) {
        return Some(instant);
    }
    let ago: Span = text.parse().ok()?;
    let ago = ago.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    let ago = Duration::try_from(ago).ok()?;
    let millis = i64::try_from(ago.as_millis()).ok()?;
    Some(Timestamp::clamped(now.millis().saturating_sub(millis)))
}

fn shorten(term: &str) -> String {
    match term.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &term[..end]),
        None => term.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: &str = "2030-01-31T08:00:00Z";

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn parse(text: &str) -> Result<Filter, BadFilter> {
        Filter::parse(text, at(NOW))
    }

    #[test]
    fn no_term_asks_for_everything() {
        for text in ["", "   ", "\t\n", "status:FAILED"] {
            assert_eq!(parse(text), Ok(Filter::default()), "{text:?}");
        }
    }

    #[test]
    fn all_terms_hold_together() {
        let text = " queue:mail  type:email.send group:0123456789abcdef since:24h \
                    until:2030-01-31T07:00:00Z status:FAILED ";
        let filter = parse(text).unwrap();
        let wanted = Filter {
            queue: Some(QueueName::new("mail").unwrap()),
            task_type: Some(TypeName::new("email.send").unwrap()),
            group: Some("0123456789abcdef".parse().unwrap()),
            since: Some(at("2030-01-30T08:00:00Z")),
            until: Some(at("2030-01-31T07:00:00Z")),
        };
        assert_eq!(filter, wanted);
        assert_eq!(DeadFilter::from(filter).since, wanted.since);
    }

    #[test]
    fn times_ago_are_read_as_people_write_them() {
        for (text, instant) in [
            ("90s", "2030-01-31T07:58:30Z"),
            ("1h30m", "2030-01-31T06:30:00Z"),
            ("PT24H", "2030-01-30T08:00:00Z"),
            ("P1D", "2030-01-30T08:00:00Z"),
            ("7d", "2030-01-24T08:00:00Z"),
            ("2w", "2030-01-17T08:00:00Z"),
            ("0s", NOW),
            ("1000000h", "1970-01-01T00:00:00Z"),
            ("2030-01-31T09:00:00+02:00", "2030-01-31T07:00:00Z"),
        ] {
            let filter = parse(&format!("since:{text}")).unwrap();
            assert_eq!(filter.since, Some(at(instant)), "{text}");
        }
    }

    #[test]
    fn an_error_names_the_term_and_what_is_allowed() {
        let long = "x".repeat(FILTER_CHARS + 1);
        for (text, wanted) in [
            ("mail", "`mail` is not of the form key:value"),
            ("queue:a color:red", "`color:red` has no known key; keys are queue, type,"),
            ("Queue:a", "`Queue:a` has no known key"),
            ("queue:a queue:b", "`queue` is given twice"),
            ("queue:", "`queue:`: queue takes a name"),
            ("type:A", "`type:A`: type takes a name"),
            ("group:12", "`group:12`: group takes an error group"),
            ("since:soon", "`since:soon`: since takes a time ago such as 24h"),
            ("since:-1h", "`since:-1h`: since takes"),
            ("until:1mo", "`until:1mo`: until takes"),
            ("until:", "`until:`: until takes"),
            ("status:PENDING", "`status:PENDING`: status takes FAILED"),
            (&long, "at most 1000 characters"),
            (&long[..200], "x…` is not"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}", now in any::<i64>()) {
            Filter::parse(&text, Timestamp::clamped(now)).ok();
        }

        #[test]
        fn any_value_of_a_known_key_is_read_or_refused(
            key in 0..KEYS.len(),
            value in "[-+0-9a-zA-Z.:]{0,40}",
        ) {
            let text = format!("{}:{value}", KEYS[key].1);
            Filter::parse(&text, Timestamp::EPOCH).ok();
        }
    }
}
