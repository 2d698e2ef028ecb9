//! Names of types, queues and tenants: short, lower case, safe in URLs, logs and metrics.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::limits::NAME_CHARS;

/// Why a text cannot be a name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// It breaks the rule for names.
    #[error("must match [a-z0-9][a-z0-9._-]{{0,99}}")]
    Rule,
    /// It is one of the system's own.
    #[error("must not begin with `duly.`, which is for the system's own tasks")]
    Reserved,
}

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

            /// Takes a name from a caller: the system's own are refused.
            pub fn given(text: &str) -> Result<Self, BadName> {
                let name = Self::new(text)?;
                if name.is_reserved() { Err(BadName::Reserved) } else { Ok(name) }
            }

            /// Whether it is one of the system's own.
            pub fn is_reserved(&self) -> bool {
                self.0.starts_with(RESERVED)
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

/// What the names of the system's own types and queues begin with.
const RESERVED: &str = "duly.";

impl TypeName {
    /// The type of tasks that carry out an order for many others.
    pub fn bulk() -> Self {
        Self("duly.bulk".into())
    }
}

impl QueueName {
    /// The queue of the system's own tasks.
    pub fn system() -> Self {
        Self("duly.system".into())
    }

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
    if first && rest && text.len() <= NAME_CHARS { Ok(()) } else { Err(BadName::Rule) }
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
            assert_eq!(TypeName::new(bad), Err(BadName::Rule), "{bad}");
        }
        assert_eq!(TypeName::new(TypeName::bulk().as_str()), Ok(TypeName::bulk()));
        assert_eq!(TypeName::given(TypeName::bulk().as_str()), Err(BadName::Reserved));
        assert_eq!(QueueName::new(QueueName::system().as_str()), Ok(QueueName::system()));
    }
}
