//! The names of sinks.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::limits::SINK_NAME_CHARS;
use crate::name::TenantName;

/// Names a sink: who receives events. A sink of the system's own begins with `duly.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SinkName(Arc<str>);

/// The text is no name of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {SINK_NAME_CHARS} characters among a-z, 0-9, `.`, `_`, `-` and `:`")]
pub struct BadSinkName;

impl SinkName {
    /// Takes a name that keeps the rule.
    pub fn new(text: &str) -> Result<Self, BadSinkName> {
        let fits = |byte: u8| {
            byte.is_ascii_lowercase()
                || byte.is_ascii_digit()
                || matches!(byte, b'.' | b'_' | b'-' | b':')
        };
        let is_name = (1..=SINK_NAME_CHARS).contains(&text.len()) && text.bytes().all(fits);
        if is_name { Ok(Self(text.into())) } else { Err(BadSinkName) }
    }

    /// The sink that keeps a tenant's events for those who read its stream.
    pub fn stream_of(tenant: &TenantName) -> Self {
        Self(format!("duly.stream:{tenant}").into())
    }

    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SinkName {
    type Error = BadSinkName;

    fn try_from(text: String) -> Result<Self, BadSinkName> {
        Self::new(&text)
    }
}

impl From<SinkName> for String {
    fn from(name: SinkName) -> Self {
        name.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sinks_are_short_and_plain() {
        assert!(SinkName::new("archive-1").is_ok());
        for bad in ["", "A", "a b", &"x".repeat(SINK_NAME_CHARS + 1)] {
            assert_eq!(SinkName::new(bad), Err(BadSinkName), "{bad:?}");
        }
        let tenant = TenantName::new("acme").unwrap();
        assert_eq!(SinkName::stream_of(&tenant).as_str(), "duly.stream:acme");
    }
}
