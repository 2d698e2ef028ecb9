//! From PostgreSQL's error codes to what the caller can do.

use deadpool_postgres::{PoolError, TimeoutType};
use duly_core::ports::store::Error;
use tokio_postgres::error::SqlState;

use super::migrate::Newer;

/// Why a statement or a row could not be used, inside this backend.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{}", chain(.0))]
    Postgres(#[from] tokio_postgres::Error),
    #[error("{table}.{column} of {id} is damaged")]
    Corrupt { table: &'static str, column: &'static str, id: String },
    #[error("another transaction was faster")]
    Raced,
    #[error("no connection to the database: {0}")]
    NoConnection(String),
    #[error(transparent)]
    Outdated(#[from] Newer),
}

pub(super) type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Postgres(error) => error.code(),
            Self::Corrupt { .. } | Self::NoConnection(_) | Self::Raced | Self::Outdated(_) => None,
        }
    }

    /// Whether it collided with another transaction: the same one succeeds when tried again.
    pub(super) fn is_collision(&self) -> bool {
        let collided = |code: &SqlState| {
            *code == SqlState::T_R_DEADLOCK_DETECTED || *code == SqlState::T_R_SERIALIZATION_FAILURE
        };
        matches!(self, Self::Raced) || self.code().is_some_and(collided)
    }

    /// Whether another transaction has held a lock for too long.
    pub(super) fn is_blocked(&self) -> bool {
        self.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }

    /// Whether a task's day has no partition yet.
    pub(super) fn is_missing_day(&self) -> bool {
        // A table of ours has no other check.
        self.code() == Some(&SqlState::CHECK_VIOLATION)
    }

    /// Whether a task is there already.
    pub(super) fn is_repeated(&self) -> bool {
        self.code() == Some(&SqlState::UNIQUE_VIOLATION)
    }

    /// Whether the payloads of a batch could be too large, and were not looked at first.
    pub(super) fn is_heavy(&self) -> bool {
        self.code().is_some_and(|code| code.code() == "DU001")
    }

    /// Whether the server has no room left.
    pub(super) fn is_full(&self) -> bool {
        self.code() == Some(&SqlState::DISK_FULL)
    }

    /// Whether this user may not do something.
    pub(super) fn is_forbidden(&self) -> bool {
        self.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
    }

    /// Whether a statement is not for the schema that the server has.
    pub(super) fn is_misunderstood(&self) -> bool {
        // Syntax errors, names that mean nothing, and plans whose answer has got other columns.
        let is_it = |code: &SqlState| {
            code.code().starts_with("42") || *code == SqlState::FEATURE_NOT_SUPPORTED
        };
        self.code().is_some_and(is_it)
    }

    /// Whether the cause lies outside the data: the same call may succeed later.
    pub(super) fn is_environment(&self) -> bool {
        self.reason().is_some()
    }

    /// What the cause is and what to do about it, if it lies outside the data.
    fn reason(&self) -> Option<&'static str> {
        match self {
            Self::NoConnection(_) => Some(SILENT),
            Self::Raced => Some("others are in the way; it goes on by itself"),
            Self::Postgres(error) => reason(error),
            Self::Outdated(_) => Some("this node is too old for the database; update it"),
            Self::Corrupt { .. } => None,
        }
    }

    /// The fault, with what to do about it.
    pub(super) fn explain(&self) -> String {
        with_advice(self.to_string(), self.reason())
    }
}

impl From<PoolError> for Fault {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) if reason(&error).is_some() => Self::Postgres(error),
            // No statement was sent: whatever keeps the server from letting us in may pass.
            PoolError::Backend(error) => Self::NoConnection(chain(&error)),
            PoolError::Timeout(TimeoutType::Wait) => {
                Self::NoConnection("all of them are busy".to_owned())
            }
            other => Self::NoConnection(other.to_string()),
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            fault if fault.is_blocked() => Self::Blocked { reason: fault.explain() },
            fault if fault.is_environment() => Self::Unavailable { reason: fault.explain() },
            Fault::Corrupt { table, column, id } => Self::Corrupt { table, column, id },
            fault => Self::Backend { name: "postgres", source: Box::new(fault) },
        }
    }
}

const SILENT: &str = "the database does not answer; is it running, and is the network?";

fn reason(error: &tokio_postgres::Error) -> Option<&'static str> {
    let Some(code) = error.code() else {
        // Not said by the server: the connection is broken, or was never made.
        return (error.is_closed() || is_io(error)).then_some(SILENT);
    };
    let reason = match code.code() {
        "25006" => "the database takes no writes; is it a replica?",
        "40001" | "40P01" => "others are in the way; it goes on by itself",
        "55P03" => "another transaction is in the way; end it if it does not (see pg_locks)",
        "53100" => "the disk is full at the PostgreSQL server; free some space there",
        "53300" => "the database has no connection left; raise its max_connections",
        "57014" => "the database took too long; see its load, and pg_locks for who waits",
        code if code.starts_with("08") => "the connection to the database broke; it is made anew",
        code if code.starts_with("28") => "the database refuses the login; check user and password",
        code if code.starts_with("53") => "the database lacks memory or other means; see its log",
        code if code.starts_with("57P") => "the database stops or starts; it goes on by itself",
        code if code.starts_with("58") => "the database's disk answers with errors; see its log",
        _ => return None,
    };
    Some(reason)
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let source = std::error::Error::source(error);
    source.is_some_and(|source| source.is::<std::io::Error>())
}

/// The same with what to do about it.
pub(super) fn explain(error: &tokio_postgres::Error) -> String {
    with_advice(chain(error), reason(error))
}

fn with_advice(said: String, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("{reason} ({said})"),
        None => said,
    }
}

/// The error with what is behind it: the driver's own text is only "db error".
pub(super) fn chain(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
