//! Finding out whether a database file is whole. A file that was copied without its log while a
//! server was running holds some commits in part, or none at all.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::migrate;

/// Parts of the file are missing or unreadable; the text says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{} is incomplete or damaged: {what}. {}", path.display(), advice(path))]
pub struct Damaged {
    /// Which file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

impl Damaged {
    pub(super) fn new(path: &Path, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), what: what.into() }
    }

    /// What to do about it.
    pub fn advice(&self) -> String {
        advice(&self.path)
    }
}

fn advice(path: &Path) -> String {
    let file = path.file_name().map_or("duly.db".into(), |name| name.to_string_lossy());
    format!(
        "Probably {file} was copied without {file}-wal while a server was running. Copy both files \
         while no server runs, or make a backup with `duly backup` and put it in place with \
         `duly restore`"
    )
}

/// How long [`examine`] reads a file at the most.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks at a file that no process has open and changes nothing. A large file is not read to its
/// end.
pub fn examine(path: &Path) -> Result<(), Damaged> {
    check_header(path)?;
    let damaged = |error: rusqlite::Error| Damaged::new(path, error.to_string());
    let mut connection = open_unchanged(path).map_err(damaged)?;
    check_tables(path, &connection)?;
    let end = Instant::now() + PATIENCE;
    connection.progress_handler(100_000, Some(move || Instant::now() > end)).map_err(damaged)?;
    find_damage(&connection).map_or(Ok(()), |what| Err(Damaged::new(path, what)))
}

/// Opens a file for reading. SQLite would make a log for a file that has none, which would hide
/// that it is missing.
fn open_unchanged(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if log_of(path).exists() {
        return Connection::open_with_flags(path, flags);
    }
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let escaped = absolute.to_string_lossy().replace('%', "%25");
    let escaped = escaped.replace('?', "%3f").replace('#', "%23");
    let uri = format!("file:{escaped}?immutable=1");
    Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
}

/// What is wrong with the pages of a file, if anything.
pub(super) fn find_damage(connection: &Connection) -> Option<String> {
    let found = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match found {
        Ok(text) if text == "ok" => None,
        // The first line of several only says where the others were found.
        Ok(text) => Some(text.lines().last().unwrap_or_default().to_owned()),
        Err(error) if is_damage(&error) => Some(error.to_string()),
        Err(_) => None,
    }
}

/// Whether SQLite found the file itself at fault.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
}

/// Makes sure that the file has every table of its schema.
pub(super) fn check_tables(path: &Path, connection: &Connection) -> Result<(), Damaged> {
    let damaged = |error: rusqlite::Error| Damaged::new(path, error.to_string());
    let version: usize =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(damaged)?;
    let expected = migrate::tables_of(version).map_err(damaged)?;
    let found = migrate::tables(connection).map_err(damaged)?;
    match expected.difference(&found).next() {
        Some(table) => Err(Damaged::new(path, format!("the table {table} is missing"))),
        None => Ok(()),
    }
}

/// What every file of SQLite begins with.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// Where the header says how the file is written, and what stands there if it has a log.
const WRITE_VERSION: usize = 18;
const HAS_LOG: u8 = 2;
/// Where the header keeps the version of the schema.
const USER_VERSION: std::ops::Range<usize> = 60..64;

/// Refuses a file whose header says that everything in it stands in a log which is not there. To
/// open such a file would make an empty database of it.
pub(super) fn check_header(path: &Path) -> Result<(), Damaged> {
    let mut header = [0; 100];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    // There is no file yet, it is empty, or opening it will tell what is wrong.
    if read.is_err() || !header.starts_with(MAGIC) {
        return Ok(());
    }
    let is_empty = header[USER_VERSION] == [0; 4];
    if is_empty && header[WRITE_VERSION] == HAS_LOG && !log_of(path).exists() {
        return Err(Damaged::new(path, "it holds nothing, and its log is not there"));
    }
    Ok(())
}

fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(path: &Path) -> Connection {
        let mut connection = Connection::open(path).unwrap();
        connection.pragma_update(None, "journal_mode", "wal").unwrap();
        migrate::up(&mut connection).unwrap();
        connection
    }

    #[test]
    fn a_file_without_the_log_that_holds_its_schema_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (path, copy) = (directory.path().join("a.db"), directory.path().join("b.db"));
        let _connection = made(&path);
        examine(&path).unwrap();
        std::fs::copy(&path, &copy).unwrap();
        let error = examine(&copy).unwrap_err().to_string();
        assert!(error.contains("b.db-wal") && error.contains("duly restore"), "{error}");
        assert!(!log_of(&copy).exists(), "looking at it made no log");
    }

    #[test]
    fn a_table_that_is_missing_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a # % ?.db");
        let connection = made(&path);
        connection.execute("DROP TABLE attempt", []).unwrap();
        drop(connection);
        let error = examine(&path).unwrap_err();
        assert_eq!(error.what, "the table attempt is missing");
    }

    #[test]
    fn a_page_that_is_not_what_it_was_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        drop(made(&path));
        examine(&path).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 4096;
        bytes[last..].fill(0xff);
        std::fs::write(&path, bytes).unwrap();
        examine(&path).unwrap_err();
    }
}
