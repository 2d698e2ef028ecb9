//! Names of types, queues and tenants: short, lower case, safe in URLs, logs and metrics.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::limits::NAME_CHARS;

/// The text breaks the rule for names.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("must match [a-z0-9][a-z0-9._-]{{0,99}}")]
pub struct BadName;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes a name that keeps the rule.
            pub fn new(text: &str) -> Result<Self, BadName> {
                check(text)?;
                Ok(Self(text.into()))
            }

            /// The name's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadName;

            fn try_from(text: String) -> Result<Self, BadName> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.as_ref().to_owned()
            }
        }
    };
}

name! {
    /// Names the handler of a task.
    TypeName
}
name! {
    /// Where tasks wait.
    QueueName
}
name! {
    /// The owner of tasks.
    TenantName
}

impl QueueName {
    /// The queue of a task that does not name one.
    pub fn default_queue() -> Self {
        Self("default".into())
    }
}

impl TenantName {
    /// The tenant of an installation that has only one.
    pub fn default_tenant() -> Self {
        Self("default".into())
    }
}

/// (tenant, queue, type): the key of the due index; a claim names the lanes it can serve.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    /// Whose tasks.
    pub tenant: TenantName,
    /// Where they wait.
    pub queue: QueueName,
    /// What they are.
    pub task_type: TypeName,
}

fn check(text: &str) -> Result<(), BadName> {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let first = text.bytes().next().is_some_and(word);
    let rest = text.bytes().all(|byte| word(byte) || matches!(byte, b'.' | b'_' | b'-'));
    if first && rest && text.len() <= NAME_CHARS { Ok(()) } else { Err(BadName) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_the_rule() {
        let longest = "a".repeat(NAME_CHARS);
        for good in ["a", "0", "invoice.render", "a_b-c.9", &longest] {
            assert!(TypeName::new(good).is_ok(), "{good}");
        }
        let too_long = "a".repeat(NAME_CHARS + 1);
        for bad in ["", "A", ".a", "-a", "_a", "a b", "ä", "a/b", "a\0", &too_long] {
            assert_eq!(TypeName::new(bad), Err(BadName), "{bad}");
        }
    }
}
