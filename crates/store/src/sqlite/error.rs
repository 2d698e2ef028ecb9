//! From SQLite's result codes to what the caller can do.

use std::path::Path;

use duly_core::ports::store::Error;
use rusqlite::{ErrorCode, ffi};

/// Why a statement or a row could not be used, inside this backend.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The disk is full, although SQLite gave another reason.
    #[error(transparent)]
    Full(rusqlite::Error),
    #[error("{table}.{column} of {id} is damaged")]
    Corrupt { table: &'static str, column: &'static str, id: String },
    #[error("the writer panicked: {0}")]
    Panic(String),
    #[error("the copy cannot be read: {0}")]
    Copy(std::io::Error),
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
            Self::Full(_) | Self::Panic(_) | Self::Copy(_) => false,
        }
    }

    /// Tells a full disk from other trouble with it. SQLite reports both in the same way where it
    /// makes the index of the log longer, opens a file or syncs one.
    pub(super) fn check_disk(self, database: &Path) -> Self {
        match self {
            Self::Sqlite(error) if may_be_full(&error) && has_no_space(database) => {
                Self::Full(error)
            }
            fault => fault,
        }
    }

    /// Whether the cause lies outside the data: the same commands may succeed later, and running
    /// them one by one would not help now.
    pub(super) fn is_environment(&self) -> bool {
        match self {
            Self::Full(_) => true,
            Self::Sqlite(error) => reason(error).is_some(),
            Self::Corrupt { .. } | Self::Panic(_) | Self::Copy(_) => false,
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Corrupt { table, column, id } => Self::Corrupt { table, column, id },
            Fault::Panic(_) | Fault::Copy(_) => {
                Self::Backend { name: "sqlite", source: Box::new(fault) }
            }
            Fault::Full(error) => Self::Unavailable { reason: format!("{FULL} ({error})") },
            Fault::Sqlite(error) => match reason(&error) {
                Some(reason) => Self::Unavailable { reason: format!("{reason} ({error})") },
                None => Self::Backend { name: "sqlite", source: Box::new(error) },
            },
        }
    }
}

const FULL: &str = "the disk is full; free some space and it goes on by itself";

fn reason(error: &rusqlite::Error) -> Option<&'static str> {
    let reason = match error.sqlite_error_code()? {
        ErrorCode::DiskFull => FULL,
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

/// Whether SQLite says that the disk is full.
pub(super) fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

/// Whether a full disk is one of the causes of this error.
pub(super) fn may_be_full(error: &rusqlite::Error) -> bool {
    let Some(error) = error.sqlite_error() else { return false };
    match error.code {
        ErrorCode::DiskFull | ErrorCode::CannotOpen => true,
        ErrorCode::SystemIoFailure => matches!(
            error.extended_code,
            ffi::SQLITE_IOERR_WRITE
                | ffi::SQLITE_IOERR_FSYNC
                | ffi::SQLITE_IOERR_DIR_FSYNC
                | ffi::SQLITE_IOERR_TRUNCATE
                | ffi::SQLITE_IOERR_SHMOPEN
                | ffi::SQLITE_IOERR_SHMSIZE
                | ffi::SQLITE_IOERR_SHMMAP
        ),
        _ => false,
    }
}

/// Less free space than this counts as none: the index of the log grows by 32 KiB at a time.
const NO_SPACE: u64 = 256 * 1024;

/// Whether the disk under a file has no room for data or for another file.
pub(super) fn has_no_space(file: &Path) -> bool {
    let directory = file.parent().filter(|path| !path.as_os_str().is_empty());
    let Ok(disk) = rustix::fs::statvfs(directory.unwrap_or(Path::new("."))) else { return false };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    // A file system that does not count its files says that it has none.
    free < NO_SPACE || (disk.f_files > 0 && disk.f_favail == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
    }

    fn text(fault: Fault) -> String {
        Error::from(fault).to_string()
    }

    #[test]
    fn a_disk_with_space_keeps_the_reason_of_sqlite() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("duly.db");
        let fault = Fault::from(error(ffi::SQLITE_IOERR_SHMSIZE)).check_disk(&database);
        assert!(text(fault).contains("the disk answers with errors"));
    }

    #[test]
    fn what_a_full_disk_can_cause_is_told_from_what_it_cannot() {
        for code in [
            ffi::SQLITE_FULL,
            ffi::SQLITE_CANTOPEN,
            ffi::SQLITE_IOERR_SHMSIZE,
            ffi::SQLITE_IOERR_SHMMAP,
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_IOERR_WRITE,
        ] {
            assert!(may_be_full(&error(code)), "{code}");
        }
        for code in [ffi::SQLITE_IOERR_READ, ffi::SQLITE_CORRUPT, ffi::SQLITE_BUSY] {
            assert!(!may_be_full(&error(code)), "{code}");
        }
    }

    #[test]
    fn a_full_disk_is_called_one_whatever_sqlite_calls_it() {
        let full = Fault::Full(error(ffi::SQLITE_IOERR_SHMSIZE));
        assert!(full.is_environment());
        assert!(text(full).contains("the disk is full; free some space"));
        assert!(text(Fault::from(error(ffi::SQLITE_FULL))).contains("the disk is full"));
    }
}
