//! Opening the file: connections with their settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use duly_core::ports::store;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::checkpoint::LOG_KEPT;
use super::error::Fault;
use super::{error, examine, lock, migrate};

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
    /// Another process has the file, or the lock cannot be had.
    #[error("{0}")]
    Locked(String),
    /// Written by a newer version.
    #[error("{0}; update this one or use another data directory")]
    Newer(String),
    /// The disk has no room for what a start writes.
    #[error("cannot open {}: the disk is full; free some space and start again", .0.display())]
    Full(PathBuf),
    /// Parts of the file are missing or unreadable.
    #[error(transparent)]
    Damaged(#[from] examine::Damaged),
    /// SQLite cannot use the file.
    #[error("cannot open {}: {reason}", path.display())]
    Database {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl OpenError {
    pub(super) fn database(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Database { path: path.to_owned(), reason: reason.to_string() }
    }

    fn sqlite(path: &Path, error: rusqlite::Error) -> Self {
        if error::is_full(&error) || (error::may_be_full(&error) && error::has_no_space(path)) {
            return Self::Full(path.to_owned());
        }
        match store::Error::from(Fault::from(error)) {
            store::Error::Unavailable { reason } => Self::database(path, reason),
            error => Self::database(path, error),
        }
    }

    /// Why the first transaction on a file failed: the file itself is looked at only now, since that
    /// reads all of it.
    pub(super) fn first_use(path: &Path, connection: &Connection, error: store::Error) -> Self {
        match error {
            store::Error::Unavailable { .. } if error::has_no_space(path) => {
                Self::Full(path.to_owned())
            }
            error => match (examine::find_damage(connection), error) {
                (Some(what), _) => Self::Damaged(examine::Damaged::new(path, what)),
                (None, store::Error::Unavailable { reason }) => Self::database(path, reason),
                (None, error) => Self::database(path, error),
            },
        }
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
    examine::check_header(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let broken = |error: rusqlite::Error| OpenError::sqlite(path, error);
    let mut connection = Connection::open_with_flags(path, flags).map_err(broken)?;
    let prepared = configure_writer(&connection).map_err(migrate::Error::from);
    let prepared = prepared.and_then(|()| migrate::up(&mut connection));
    prepared.map_err(|error| match error {
        migrate::Error::Newer { .. } => OpenError::Newer(error.to_string()),
        migrate::Error::Sqlite(error) if examine::is_damage(&error) => {
            let what = examine::find_damage(&connection).unwrap_or_else(|| error.to_string());
            examine::Damaged::new(path, what).into()
        }
        migrate::Error::Sqlite(error) => broken(error),
    })?;
    examine::check_tables(path, &connection)?;
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
