//! From SQLite's result codes to what the caller can do.

use duly_core::ports::store::Error;
use rusqlite::ErrorCode;

/// Why a statement or a row could not be used, inside this backend.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("{table}.{column} of {id} is damaged")]
    Corrupt { table: &'static str, column: &'static str, id: String },
    #[error("the writer panicked: {0}")]
    Panic(String),
}

pub(super) type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    /// Whether one row is to blame, and the others can be served without it.
    pub(super) fn is_bad_row(&self) -> bool {
        match self {
            Self::Corrupt { .. } => true,
            Self::Sqlite(error) => matches!(
                error,
                rusqlite::Error::FromSqlConversionFailure(..)
                    | rusqlite::Error::IntegralValueOutOfRange(..)
                    | rusqlite::Error::InvalidColumnType(..)
                    | rusqlite::Error::Utf8Error(..)
            ),
            Self::Panic(_) => false,
        }
    }

    /// Whether the cause lies outside the data: the same commands may succeed later, and running
    /// them one by one would not help now.
    pub(super) fn is_environment(&self) -> bool {
        matches!(self, Self::Sqlite(error) if reason(error).is_some())
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Corrupt { table, column, id } => Self::Corrupt { table, column, id },
            Fault::Panic(_) => Self::Backend { name: "sqlite", source: Box::new(fault) },
            Fault::Sqlite(error) => match reason(&error) {
                Some(reason) => Self::Unavailable { reason: format!("{reason} ({error})") },
                None => Self::Backend { name: "sqlite", source: Box::new(error) },
            },
        }
    }
}

fn reason(error: &rusqlite::Error) -> Option<&'static str> {
    let reason = match error.sqlite_error_code()? {
        ErrorCode::DiskFull => "the disk is full; free some space and it goes on by itself",
        ErrorCode::SystemIoFailure => "the disk answers with errors; see the system's log",
        ErrorCode::ReadOnly => "the database cannot be written; check the rights of its directory",
        ErrorCode::CannotOpen => "the database file cannot be opened; check its directory",
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => "another program locks the database",
        ErrorCode::OutOfMemory => "out of memory",
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            "the database file is damaged; restore it from a backup"
        }
        _ => return None,
    };
    Some(reason)
}
