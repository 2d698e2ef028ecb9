//! Moving committed pages from the log into the database.
//!
//! While the writer is busy a helper thread does it, so that no commit waits for it; overwriting
//! a log that has been moved is faster than growing it, so the file keeps its size. Only when the
//! writer has been idle for a while is the log cut to nothing, after which the process writes no
//! byte until there is work.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
/// Idle time after which the log is cut.
pub(super) const IDLE: Duration = Duration::from_secs(2);
/// The longest pause between two tries to cut it.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Checkpointer {
    pages: Arc<AtomicUsize>,
    helped_at: usize,
    helper: Option<(mpsc::SyncSender<()>, JoinHandle<()>)>,
}

impl Checkpointer {
    pub(super) fn new(connection: &mut Connection, path: PathBuf) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&pages);
        connection.wal_hook(Some(
            move |_: &mut rusqlite::hooks::Wal, count: std::ffi::c_int| {
                seen.store(usize::try_from(count).unwrap_or(0), Ordering::Relaxed);
                Ok(())
            },
        ))?;
        let (calls, inbox) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("duly-checkpoint".to_owned());
        let helper = thread.spawn(move || help(&path, &inbox));
        let helper = helper.ok().map(|handle| (calls, handle));
        Ok(Self { pages, helped_at: 0, helper })
    }

    /// Pages in the log after the last commit.
    pub(super) fn pages(&self) -> usize {
        self.pages.load(Ordering::Relaxed)
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
        if self.pages() == 0 {
            return true;
        }
        match cut(connection) {
            // A reader still uses the log; it is tried again.
            Ok(true) => false,
            Ok(false) => {
                self.pages.store(0, Ordering::Relaxed);
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

fn help(path: &std::path::Path, calls: &mpsc::Receiver<()>) {
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

/// Cuts the log, without waiting for whoever is in the way: writes would wait with us.
fn cut(connection: &Connection) -> rusqlite::Result<bool> {
    connection.busy_timeout(Duration::ZERO)?;
    let outcome = checkpoint(connection, "TRUNCATE");
    connection.busy_timeout(open::BUSY)?;
    outcome
}

/// Whether somebody was in the way.
fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<bool> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    connection.query_row(&sql, [], |row| row.get(0))
}

fn report(outcome: rusqlite::Result<bool>) {
    if let Err(error) = outcome {
        tracing::warn!(%error, "the log could not be moved into the database");
    }
}
