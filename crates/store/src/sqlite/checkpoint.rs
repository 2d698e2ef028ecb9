//! Moving committed pages from the log into the database.
//!
//! While the writer is busy a helper thread does it, so that no commit waits for it. When the
//! writer has been idle for a while the rest is moved, after which the process writes no byte until
//! there is work. The file keeps its size then, and gets it before it is first needed: a commit that
//! overwrites syncs in half the time of one that makes the file longer.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::open::{self, Side};

/// Pages in the log above which the helper is called: 16 MiB.
const CALL_HELPER: usize = 4096;
/// Pages above which the writer itself moves the rest, which lets the log start over: 64 MiB. A
/// helper alone never catches up with a writer that does not pause.
const WAIT_FOR_IT: usize = 4 * CALL_HELPER;
/// Bytes of one page in the log: 4 KiB and the head of its frame.
const PAGE_BYTES: u64 = 4096 + 24;
/// Bytes that the log gets before it needs them.
const LOG_AHEAD: u64 = CALL_HELPER as u64 * PAGE_BYTES;
/// Bytes that the log keeps when it starts over.
pub(super) const LOG_KEPT: u64 = 4 * LOG_AHEAD;
/// Idle time after which the rest of the log is moved.
pub(super) const IDLE: Duration = Duration::from_secs(2);
/// The longest pause between two tries to do so.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// What the log has seen.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Pages in it after the last commit.
    pages: AtomicUsize,
    /// Pages ever written to it.
    written: AtomicU64,
}

impl Log {
    /// Bytes ever written to it.
    pub(super) fn bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed) * PAGE_BYTES
    }

    fn committed(&self, pages: usize) {
        let before = self.pages.swap(pages, Ordering::Relaxed);
        // Fewer than before: it has started over.
        let new = pages.checked_sub(before).unwrap_or(pages);
        self.written.fetch_add(new as u64, Ordering::Relaxed);
    }
}

pub(super) struct Checkpointer {
    log: Arc<Log>,
    path: PathBuf,
    /// Whether the file has the size that it is to have.
    grown: bool,
    helped_at: usize,
    helper: Option<(mpsc::SyncSender<()>, JoinHandle<()>)>,
}

impl Checkpointer {
    pub(super) fn new(connection: &mut Connection, path: PathBuf) -> rusqlite::Result<Self> {
        let log = Arc::new(Log::default());
        let seen = Arc::clone(&log);
        connection.wal_hook(Some(
            move |_: &mut rusqlite::hooks::Wal, count: std::ffi::c_int| {
                seen.committed(usize::try_from(count).unwrap_or(0));
                Ok(())
            },
        ))?;
        let (calls, inbox) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("duly-checkpoint".to_owned());
        let database = path.clone();
        let helper = thread.spawn(move || help(&database, &inbox));
        let helper = helper.ok().map(|handle| (calls, handle));
        Ok(Self { log, path, grown: false, helped_at: 0, helper })
    }

    pub(super) fn log(&self) -> &Arc<Log> {
        &self.log
    }

    fn pages(&self) -> usize {
        self.log.pages.load(Ordering::Relaxed)
    }

    /// Called after each commit.
    pub(super) fn after_commit(&mut self, connection: &Connection) {
        let pages = self.pages();
        if pages < self.helped_at {
            self.helped_at = 0;
        }
        if pages >= WAIT_FOR_IT {
            report(checkpoint(connection, "PASSIVE"));
            self.helped_at = 0;
        } else if pages >= self.helped_at + CALL_HELPER
            && let Some((calls, _)) = &self.helper
            && calls.try_send(()).is_ok()
        {
            self.helped_at = pages;
        }
    }

    /// Called when nothing has come for [`IDLE`]: returns whether there is nothing left to do.
    pub(super) fn when_idle(&mut self, connection: &Connection) -> bool {
        self.helped_at = 0;
        if !std::mem::replace(&mut self.grown, true)
            && let Err(error) = grow(&self.path)
        {
            tracing::debug!(%error, "the log could not be grown ahead");
        }
        self.move_rest(connection)
    }

    /// Empties the log; returns whether there is nothing left to do.
    pub(super) fn move_rest(&mut self, connection: &Connection) -> bool {
        if self.pages() == 0 {
            return true;
        }
        match start_over(connection) {
            // A reader still uses the log; it is tried again.
            Ok(true) => false,
            Ok(false) => {
                self.log.pages.store(0, Ordering::Relaxed);
                true
            }
            // The next commit meets the same trouble and reports it.
            failed => {
                report(failed);
                true
            }
        }
    }

    /// Ends the helper.
    pub(super) fn stop(self) {
        if let Some((calls, handle)) = self.helper {
            drop(calls);
            drop(handle.join());
        }
    }
}

fn help(path: &Path, calls: &mpsc::Receiver<()>) {
    let mut connection = None;
    while calls.recv().is_ok() {
        if connection.is_none() {
            connection = open::side(path, Side::Checkpoint).ok();
        }
        if let Some(open) = &connection {
            report(checkpoint(open, "PASSIVE"));
        }
    }
}

/// Lets the log start over, without waiting for readers in the way: writes would wait with us.
fn start_over(connection: &Connection) -> rusqlite::Result<bool> {
    connection.busy_timeout(Duration::ZERO)?;
    let outcome = checkpoint(connection, "RESTART");
    connection.busy_timeout(open::BUSY)?;
    outcome
}

/// Makes the log as long as it gets before its pages are first moved. Zeros behind its end are no
/// part of it. Only for the thread that writes.
fn grow(database: &Path) -> std::io::Result<()> {
    let mut path = database.as_os_str().to_owned();
    path.push("-wal");
    let mut file = std::fs::OpenOptions::new().append(true).open(path)?;
    let length = file.metadata()?.len();
    let mut zeros = std::io::repeat(0).take(LOG_AHEAD.saturating_sub(length));
    if let Err(error) = std::io::copy(&mut zeros, &mut file).and_then(|_| file.sync_all()) {
        // A disk that is nearly full has better uses for the room.
        file.set_len(length)?;
        return Err(error);
    }
    Ok(())
}

/// Whether a reader was in the way.
fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<bool> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    connection.query_row(&sql, [], |row| row.get(0))
}

fn report(outcome: rusqlite::Result<bool>) {
    if let Err(error) = outcome {
        tracing::warn!(%error, "the log could not be moved into the database");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_was_grown_ahead_keeps_what_is_committed() -> Result<(), Box<dyn std::error::Error>>
    {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("duly.db");
        let mut connection = open::writer(&path)?;
        let mut checkpointer = Checkpointer::new(&mut connection, path.clone())?;
        connection.execute("CREATE TABLE word (text TEXT)", [])?;
        let log = || std::fs::metadata(folder.path().join("duly.db-wal")).map(|log| log.len());
        assert!(log()? < LOG_AHEAD);
        assert!(checkpointer.when_idle(&connection), "no reader is in the way");
        assert_eq!(log()?, LOG_AHEAD);
        connection.execute("INSERT INTO word VALUES ('kept')", [])?;
        assert_eq!(log()?, LOG_AHEAD, "there was room");
        assert!(checkpointer.log().bytes() > 0);

        // What a process that dies now leaves behind.
        let left = folder.path().join("left.db");
        std::fs::copy(&path, &left)?;
        std::fs::copy(folder.path().join("duly.db-wal"), folder.path().join("left.db-wal"))?;
        let text: String =
            open::writer(&left)?.query_row("SELECT text FROM word", [], |row| row.get(0))?;
        assert_eq!(text, "kept");
        checkpointer.stop();
        Ok(())
    }
}
