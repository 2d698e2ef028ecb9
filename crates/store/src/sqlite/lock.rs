//! One process per database: a lock on a file beside it, released by the kernel when the process
//! dies, however it dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why the lock could not be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("another process (pid {pid}) has {} open; stop it or use another data directory", path.display())]
    Held { path: PathBuf, pid: String },
    #[error("cannot lock {}: {source}; check the rights and the space there, or choose another directory with --data or --store", path.display())]
    Io { path: PathBuf, source: std::io::Error },
}

/// The process that has the database open, if one has.
pub fn holder(database: &Path) -> std::io::Result<Option<String>> {
    let mut file = match File::open(path_of(database)) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(read_pid(&mut file))),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Held for as long as this value lives.
#[derive(Debug)]
pub(super) struct ProcessLock {
    _file: File,
}

impl ProcessLock {
    pub(super) fn acquire(database: &Path) -> Result<Self, Error> {
        let path = path_of(database);
        let io = |source| Error::Io { path: path.clone(), source };
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        let mut file = options.open(&path).map_err(io)?;
        if !lock_soon(&file).map_err(io)? {
            let pid = read_pid(&mut file);
            return Err(Error::Held { path: database.to_owned(), pid });
        }
        file.set_len(0).map_err(io)?;
        file.rewind().map_err(io)?;
        writeln!(file, "{}", std::process::id()).map_err(io)?;
        Ok(Self { _file: file })
    }
}

/// Tries for a moment: who only looks at the lock, as [`holder`] does, takes it for an instant.
fn lock_soon(file: &File) -> std::io::Result<bool> {
    for _ in 0..10 {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => std::thread::park_timeout(Duration::from_millis(10)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

fn path_of(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(".lock");
    PathBuf::from(path)
}

fn read_pid(file: &mut File) -> String {
    let mut pid = String::new();
    drop(file.read_to_string(&mut pid));
    if pid.trim().is_empty() { "unknown".to_owned() } else { pid.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_told_who_the_first_is() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("duly.db");
        let first = ProcessLock::acquire(&database).unwrap();
        let second = ProcessLock::acquire(&database).unwrap_err();
        assert!(second.to_string().contains(&std::process::id().to_string()), "{second}");
        assert_eq!(holder(&database).unwrap(), Some(std::process::id().to_string()));
        drop(first);
        assert_eq!(holder(&database).unwrap(), None);
        ProcessLock::acquire(&database).unwrap();
    }
}
