//! What a process of the server can do.

use std::fmt;
use std::str::FromStr;

/// One of the things that a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Answers requests.
    Api,
    /// Watches sessions and deadlines, and does what only one node may do at a time.
    Scheduler,
    /// Runs tasks.
    Worker,
}

/// There is no role of this name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one of api, scheduler, worker")]
pub struct UnknownRole;

impl Role {
    /// All of them, which is what a node does unless it is told otherwise.
    pub const ALL: [Self; 3] = [Self::Api, Self::Scheduler, Self::Worker];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Scheduler => "scheduler",
            Self::Worker => "worker",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or(UnknownRole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_called_by_its_name_alone() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        for text in ["", "API", "notifier", "api "] {
            assert_eq!(text.parse::<Role>(), Err(UnknownRole), "{text:?}");
        }
    }
}
