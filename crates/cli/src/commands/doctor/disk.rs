//! Checks the data directory and its disk.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use duly_store::sqlite;

use super::server::Expected;
use super::{Finding, State};

/// Less free space than this is a warning.
const LITTLE_SPACE: u64 = 1 << 30;
/// A sync that takes longer than this makes the server slow.
const SLOW_SYNC: Duration = Duration::from_millis(10);

/// Checks the file and its directory. Also returns which server to expect.
pub(super) fn check(database: &Path) -> (Vec<Finding>, Expected) {
    let data = database.parent().filter(|data| !data.as_os_str().is_empty());
    let data = data.unwrap_or(Path::new("."));
    let mut findings = vec![Finding::ok("sqlite", sqlite::version())];
    let directory = existing(data);
    findings.push(rights(data, &directory));
    findings.push(space(&directory));
    findings.extend(sync(&directory));
    findings.push(lock(database));
    findings.extend(file(database));
    (findings, expected(data, database))
}

/// The server to expect for this file.
fn expected(data: &Path, database: &Path) -> Expected {
    let flag = match data.to_str() {
        Some(".duly") => String::new(),
        _ => format!(" --data {}", data.display()),
    };
    let start = format!("start one: duly dev{flag}");
    match sqlite::holder(database) {
        Ok(Some(pid)) => Expected::Running {
            why: format!("process {pid} has the database open"),
            remedy: format!(
                "pass --server with the address that it printed; if it does not answer there, stop \
                 it and {start}"
            ),
        },
        Ok(None) if database.exists() => Expected::Stopped {
            why: format!("no process has {} open", database.display()),
            remedy: start,
        },
        Ok(None) => Expected::Never { remedy: start },
        Err(_) => Expected::Unknown,
    }
}

/// The directory itself, or the nearest one above it that exists.
fn existing(data: &Path) -> PathBuf {
    let absolute = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    let found = absolute.ancestors().find(|path| path.is_dir());
    found.map_or_else(|| PathBuf::from("/"), Path::to_owned)
}

fn probe(directory: &Path) -> std::io::Result<(PathBuf, File)> {
    let path = directory.join(format!(".duly-doctor-{}", std::process::id()));
    let file = OpenOptions::new().create(true).truncate(true).write(true).open(&path)?;
    Ok((path, file))
}

fn rights(data: &Path, directory: &Path) -> Finding {
    const CHECK: &str = "data directory";
    match probe(directory) {
        Ok((path, _)) => {
            drop(std::fs::remove_file(path));
            let found =
                if directory.ends_with(data) || data.is_dir() { "" } else { " (will be created)" };
            Finding::ok(CHECK, format!("{} can be written{found}", data.display()))
        }
        Err(error) => Finding::bad(
            CHECK,
            State::Fail,
            format!("{} cannot be written: {error}", directory.display()),
            "check its permissions, or pass another directory with --data",
        ),
    }
}

fn space(directory: &Path) -> Finding {
    const CHECK: &str = "free space";
    let Ok(stat) = rustix::fs::statvfs(directory) else {
        return Finding::bad(CHECK, State::Warn, "unknown", "check it with df");
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let text = format!("{:.1} GiB", free as f64 / f64::from(1 << 30));
    if free < LITTLE_SPACE {
        return Finding::bad(
            CHECK,
            State::Warn,
            text,
            "free some space: a full disk stops all submits",
        );
    }
    Finding::ok(CHECK, text)
}

/// How long the disk takes to sync a small write: every commit waits for this.
fn sync(directory: &Path) -> Option<Finding> {
    const CHECK: &str = "sync time";
    const ROUNDS: usize = 50;
    let (path, mut file) = probe(directory).ok()?;
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let written =
            file.rewind().and_then(|()| file.write_all(&[0; 4096])).and_then(|()| file.sync_data());
        if written.is_err() {
            break;
        }
        times.push(start.elapsed());
    }
    drop(std::fs::remove_file(path));
    times.sort_unstable();
    let median = *times.get(times.len() / 2)?;
    let text = format!("{:.2} ms for 4 KiB", median.as_secs_f64() * 1000.0);
    if median > SLOW_SYNC {
        let remedy = "every commit waits this long; use a local SSD";
        return Some(Finding::bad(CHECK, State::Warn, text, remedy));
    }
    Some(Finding::ok(CHECK, text))
}

fn lock(database: &Path) -> Finding {
    const CHECK: &str = "database lock";
    match sqlite::holder(database) {
        Ok(None) => Finding::ok(CHECK, "free"),
        Ok(Some(pid)) => Finding::ok(CHECK, format!("held by pid {pid}, a running server")),
        Err(error) => Finding::bad(
            CHECK,
            State::Fail,
            format!("{}: {error}", database.display()),
            "check the permissions of the file and its directory",
        ),
    }
}

/// Whether the file is intact. Skips a file that a server has open.
fn file(database: &Path) -> Option<Finding> {
    const CHECK: &str = "database file";
    if !database.exists() || !matches!(sqlite::holder(database), Ok(None)) {
        return None;
    }
    Some(match sqlite::examine(database) {
        Ok(()) => Finding::ok(CHECK, "intact"),
        Err(damaged) => {
            let detail = format!("incomplete or damaged: {}", damaged.what);
            Finding::bad(CHECK, State::Fail, detail, damaged.advice())
        }
    })
}
