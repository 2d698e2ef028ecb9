//! Names of types, queues, schedules and tenants: short, safe in URLs, logs and metrics. All tell
//! upper from lower case, but those of tenants, which are lower case.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::limits::NAME_CHARS;

/// Why a text cannot be a name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// It breaks the rule for types, queues and schedules.
    #[error("must match [A-Za-z0-9][A-Za-z0-9._-]{{0,99}}")]
    Rule,
    /// It breaks the rule for tenants.
    #[error("must match [a-z0-9][a-z0-9._-]{{0,99}}")]
    TenantRule,
    /// It is one of the system's own.
    #[error("must not begin with `duly.`, in any case, which is for the system's own tasks")]
    Reserved,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes a name that keeps the rule.
            pub fn new(text: &str) -> Result<Self, BadName> {
                $check(text)?;
                Ok(Self(text.into()))
            }

            /// Takes a name from a caller: the system's own are refused.
            pub fn given(text: &str) -> Result<Self, BadName> {
                let name = Self::new(text)?;
                if name.is_reserved() { Err(BadName::Reserved) } else { Ok(name) }
            }

            /// Whether it is one of the system's own.
            pub fn is_reserved(&self) -> bool {
                is_reserved(&self.0)
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
    TypeName check_name
}
name! {
    /// Where tasks wait.
    QueueName check_name
}
name! {
    /// Names a schedule within its tenant.
    ScheduleName check_name
}
name! {
    /// The owner of tasks.
    TenantName check_tenant
}

/// What the names of the system's own types, queues and schedules begin with, in upper or lower case.
pub const RESERVED: &str = "duly.";

/// Whether a name or the key of a label is one of the system's own.
pub fn is_reserved(name: &str) -> bool {
    let start = name.get(..RESERVED.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(RESERVED))
}

impl TypeName {
    /// The type of tasks that carry out an order for many others.
    pub fn bulk() -> Self {
        Self("duly.bulk".into())
    }

    /// The type of tasks that run slots of the past.
    pub fn backfill() -> Self {
        Self("duly.backfill".into())
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

fn check_name(text: &str) -> Result<(), BadName> {
    let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let fits = first && text.bytes().all(rest) && text.len() <= NAME_CHARS;
    if fits { Ok(()) } else { Err(BadName::Rule) }
}

fn check_tenant(text: &str) -> Result<(), BadName> {
    let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
    check_name(text).ok().filter(|()| is_lower).ok_or(BadName::TenantRule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_the_rule() {
        let longest = "a".repeat(NAME_CHARS);
        for good in ["a", "0", "A", "Invoice.Render", "a_b-C.9", &longest] {
            assert!(TypeName::new(good).is_ok(), "{good}");
        }
        let too_long = "a".repeat(NAME_CHARS + 1);
        for bad in ["", ".a", "-a", "_a", "a b", "ä", "a/b", "a\0", &too_long] {
            assert_eq!(TypeName::new(bad), Err(BadName::Rule), "{bad}");
        }
        assert_eq!(TypeName::new(TypeName::bulk().as_str()), Ok(TypeName::bulk()));
        assert_eq!(TypeName::given(TypeName::bulk().as_str()), Err(BadName::Reserved));
        assert_eq!(QueueName::new(QueueName::system().as_str()), Ok(QueueName::system()));
    }

    #[test]
    fn upper_and_lower_case_are_two_names() {
        assert_ne!(QueueName::given("Mail"), QueueName::given("mail"));
        for reserved in ["duly.x", "Duly.x", "DULY.BULK", "dUlY."] {
            assert_eq!(QueueName::given(reserved), Err(BadName::Reserved), "{reserved}");
            assert_eq!(TypeName::given(reserved), Err(BadName::Reserved), "{reserved}");
        }
        assert!(QueueName::given("dulyx").is_ok());
        assert_eq!(ScheduleName::given("duly.sweep"), Err(BadName::Reserved));
        assert!(ScheduleName::given("Nightly.Report").is_ok());
        assert_eq!(TenantName::given("Acme"), Err(BadName::TenantRule));
        assert_eq!(TenantName::given("duly.x"), Err(BadName::Reserved));
    }
}
