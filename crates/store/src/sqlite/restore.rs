//! A copy of a file that no server has open, and the way back: from a copy to a data directory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use duly_core::ports::store::CopyProgress;
use duly_core::time::Timestamp;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::backup::{open_target, progress_of};
use super::lock::{self, ProcessLock};
use super::{migrate, open};

/// Pages of one step: 16 MiB.
const STEP: i32 = 4096;

/// Why a file was not copied or not restored; the text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A server has the database open.
    #[error("{0}")]
    Locked(String),
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] open::OpenError),
    /// There is a database already.
    #[error("{} is there already; --replace moves it aside", .0.display())]
    Exists(PathBuf),
    /// The backup is no database of this program.
    #[error("{} is not a backup of duly: {why}", path.display())]
    NotABackup {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error("cannot copy {}: {source}", path.display())]
    Sqlite {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
}

impl From<lock::Error> for RestoreError {
    fn from(error: lock::Error) -> Self {
        Self::Locked(error.to_string())
    }
}

/// What was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Tasks in the database.
    pub tasks: u64,
    /// Where the database is that was there before.
    pub replaced: Option<PathBuf>,
}

/// Copies a database that no server has open into a file that is not there yet.
pub fn back_up(
    database: &Path,
    target: &Path,
    mut progress: impl FnMut(CopyProgress),
) -> Result<(), RestoreError> {
    let io = |path: &Path, source| RestoreError::Io { path: path.to_owned(), source };
    if !database.exists() {
        return Err(io(database, std::io::ErrorKind::NotFound.into()));
    }
    let _lock = ProcessLock::acquire(database)?;
    let source = open::writer(database)?;
    let failed = |source| RestoreError::Sqlite { path: target.to_owned(), source };
    let mut copy = open_target(target).map_err(failed)?;
    let backup = Backup::new(&source, &mut copy).map_err(failed)?;
    while backup.step(STEP).map_err(failed)? != StepResult::Done {
        progress(progress_of(&backup));
    }
    progress(progress_of(&backup));
    drop(backup);
    drop(copy);
    File::open(target).and_then(|file| file.sync_all()).map_err(|source| io(target, source))
}

/// Puts a backup in the place of a database that no server has open. What is there already is moved
/// aside, or the call fails if it may not be replaced. Sessions of workers that were open when the backup
/// was made are ended: their leases come back when a server opens the file.
pub fn restore(
    backup: &Path,
    database: &Path,
    replace: bool,
    now: Timestamp,
) -> Result<Restored, RestoreError> {
    open::make_directory(database)?;
    let _lock = ProcessLock::acquire(database)?;
    if database.exists() && !replace {
        return Err(RestoreError::Exists(database.to_owned()));
    }
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| RestoreError::Io { path, source }
    };
    let fresh = with_suffix(database, ".restoring");
    remove_all(&fresh).map_err(io(&fresh))?;
    fs::copy(backup, &fresh).map_err(io(backup))?;
    let checked = check(&fresh, now);
    let tasks = checked.map_err(|why| RestoreError::NotABackup { path: backup.to_owned(), why });
    let tasks = match tasks {
        Ok(tasks) => tasks,
        Err(error) => {
            remove_all(&fresh).map_err(io(&fresh))?;
            return Err(error);
        }
    };
    File::open(&fresh).and_then(|file| file.sync_all()).map_err(io(&fresh))?;
    let replaced = database.exists().then(|| move_aside(database, now)).transpose();
    let replaced = replaced.map_err(io(database))?;
    fs::rename(&fresh, database).map_err(io(&fresh))?;
    let directory = database.parent().filter(|path| !path.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    File::open(directory).and_then(|file| file.sync_all()).map_err(io(directory))?;
    Ok(Restored { tasks, replaced })
}

/// Makes sure that a file is whole and that this program can use it, and ends the sessions in it.
/// Answers how many tasks it holds, or what is wrong.
fn check(path: &Path, now: Timestamp) -> Result<u64, String> {
    let said = |error: rusqlite::Error| error.to_string();
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(said)?;
    let version: i64 =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(said)?;
    if version == 0 {
        return Err("it has no schema of duly".to_owned());
    }
    if usize::try_from(version).is_ok_and(|version| version > migrate::known()) {
        return Err("it was made by a newer duly; update this one".to_owned());
    }
    let sound: String =
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(said)?;
    if sound != "ok" {
        return Err(format!("it is damaged: {sound}"));
    }
    let end = "UPDATE session SET ended_at = ? WHERE ended_at IS NULL";
    connection.execute(end, [now.millis()]).map_err(said)?;
    let tasks = connection.query_row("SELECT count(*) FROM task", [], |row| row.get(0));
    let tasks = tasks.map_err(said)?;
    // One file again: nothing may be left in a log beside it.
    connection.pragma_update(None, "journal_mode", "delete").map_err(said)?;
    Ok(tasks)
}

/// Moves a database and its log to another name.
fn move_aside(database: &Path, now: Timestamp) -> std::io::Result<PathBuf> {
    let aside = with_suffix(database, &format!(".replaced-{}", now.millis()));
    for side in ["-wal", "-shm"] {
        let from = with_suffix(database, side);
        if from.exists() {
            fs::rename(from, with_suffix(&aside, side))?;
        }
    }
    fs::rename(database, &aside)?;
    Ok(aside)
}

fn remove_all(path: &Path) -> std::io::Result<()> {
    for side in ["", "-wal", "-shm", "-journal"] {
        match fs::remove_file(with_suffix(path, side)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}
