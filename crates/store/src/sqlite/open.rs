//! Opening the file: connections with their settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::checkpoint::LOG_KEPT;
use super::{lock, migrate};

/// Why the database cannot be opened; the text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be made or written.
    #[error("cannot use the directory {}: {source}; choose another with --data or --store", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Somebody else has the file, or the lock cannot be had.
    #[error("{0}")]
    Locked(String),
    /// Written by a newer version.
    #[error("{0}; update this one or use another data directory")]
    Newer(String),
    /// SQLite cannot use the file.
    #[error("cannot open {}: {source}", path.display())]
    Database {
        /// Which.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl OpenError {
    pub(super) fn database(
        path: &Path,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Database { path: path.to_owned(), source: source.into() }
    }
}

impl From<lock::Error> for OpenError {
    fn from(error: lock::Error) -> Self {
        Self::Locked(error.to_string())
    }
}

/// How long a statement waits for another program's lock.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// Makes the directory of the file, if needed.
pub(super) fn make_directory(database: &Path) -> Result<(), OpenError> {
    let Some(directory) = database.parent().filter(|path| !path.as_os_str().is_empty()) else {
        return Ok(());
    };
    std::fs::create_dir_all(directory)
        .map_err(|source| OpenError::Directory { path: directory.to_owned(), source })
}

/// The connection that writes, with the schema up to date.
pub(super) fn writer(path: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let broken = |error: rusqlite::Error| OpenError::database(path, error);
    let mut connection = Connection::open_with_flags(path, flags).map_err(broken)?;
    configure_writer(&connection).map_err(broken)?;
    migrate::up(&mut connection).map_err(|error| match error {
        migrate::Error::Newer { .. } => OpenError::Newer(error.to_string()),
        migrate::Error::Sqlite(error) => broken(error),
    })?;
    Ok(connection)
}

fn configure_writer(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    plan_by_text(connection)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // FULL: a commit is on disk before it is answered, also when the power fails.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "cache_size", -65_536)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "foreign_keys", "off")?;
    // The checkpointer decides when; see its file.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", LOG_KEPT)?;
    Ok(())
}

/// Plans by the text alone: a bound that differs from the last one would otherwise have the
/// statement compiled again, which takes longer than most statements take.
fn plan_by_text(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// A connection for queries, or for checkpoints.
pub(super) fn side(path: &Path, purpose: Side) -> rusqlite::Result<Connection> {
    let access = match purpose {
        Side::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Side::Checkpoint => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    match purpose {
        Side::Read => {
            plan_by_text(&connection)?;
            connection.pragma_update(None, "query_only", true)?;
            connection.pragma_update(None, "mmap_size", 256 << 20)?;
        }
        Side::Checkpoint => {
            connection.pragma_update(None, "synchronous", "full")?;
            connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        }
    }
    Ok(connection)
}

/// What a connection beside the writer is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Read,
    Checkpoint,
}
