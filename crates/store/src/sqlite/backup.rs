//! Copies of the file, made while the store works.
//!
//! The copy is made on the writer's own connection: what that connection changes meanwhile goes into
//! the copy as well. On another connection every commit would start the copy over. The writer copies a
//! few pages after each commit, and one step after the other while nothing else waits.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use duly_core::ports::store::{self, CopyProgress, Snapshot};
use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use tokio::sync::oneshot;

use super::error::{Fault, Result};
use super::writer::{Command, Committer, Waiting};

/// Pages of one step: half a megabyte, which takes about as long as a commit.
const STEP: i32 = 128;
/// The least time between two steps while jobs come: half a gigabyte per second at the most, so that
/// the writer is mostly free for them.
const PACE: Duration = Duration::from_millis(1);
/// After so long without a job the copy goes on at full speed.
const QUIET: Duration = Duration::from_millis(100);
/// Bytes of a page.
const PAGE: u64 = 4096;

/// How far the copy is that is being made, if one is.
pub(super) type Copying = Arc<Mutex<Option<CopyProgress>>>;

/// A copy to make, and who waits for it.
pub(super) struct CopyOrder {
    path: PathBuf,
    progress: Under,
    reply: oneshot::Sender<store::Result<Snapshot>>,
}

/// Shows the progress of a copy until it is dropped.
struct Under(Copying);

impl Drop for Under {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

impl CopyOrder {
    /// An order for a copy of this database; nothing if one is being made.
    pub(super) fn new(
        database: &Path,
        copying: &Copying,
    ) -> Option<(Self, oneshot::Receiver<store::Result<Snapshot>>)> {
        let mut progress = copying.lock();
        if progress.is_some() {
            return None;
        }
        *progress = Some(CopyProgress::default());
        let (reply, answer) = oneshot::channel();
        let (path, progress) = (path_of(database), Under(Arc::clone(copying)));
        Some((Self { path, progress, reply }, answer))
    }

    /// Makes the copy and answers. Jobs that come meanwhile are done between its steps.
    pub(super) fn carry_out(
        self,
        connection: &Connection,
        committer: &mut Committer,
        inbox: &Receiver<Command>,
    ) {
        let mut last_job = None;
        let copied = self.copy(connection, |order| {
            let begun = Instant::now();
            loop {
                let is_busy = last_job.is_some_and(|at: Instant| at.elapsed() < QUIET);
                let pause = if is_busy { PACE } else { Duration::ZERO };
                let rest = pause.saturating_sub(begun.elapsed());
                // No other copy can be ordered while this one is being made.
                let waiting = Waiting::take(inbox.recv_timeout(rest).ok(), inbox);
                if !waiting.jobs.is_empty() {
                    last_job = Some(Instant::now());
                    committer.work(connection, waiting.jobs);
                }
                if begun.elapsed() >= pause {
                    return !order.reply.is_closed();
                }
            }
        });
        let answer = match copied.and_then(|done| done.then(|| self.finished()).transpose()) {
            Ok(Some(snapshot)) => Ok(snapshot),
            Ok(None) => Err(store::Error::Unavailable { reason: "it was given up".to_owned() }),
            Err(fault) => Err(fault.check_disk(&self.path).into()),
        };
        remove(&self.path);
        let Self { reply, progress, .. } = self;
        drop(progress);
        // The caller may have gone; the copy goes with it.
        drop(reply.send(answer));
    }

    /// Copies step by step for as long as `between` wants it; whether all of it was copied.
    fn copy(
        &self,
        connection: &Connection,
        mut between: impl FnMut(&Self) -> bool,
    ) -> Result<bool> {
        remove(&self.path);
        let mut target = open_target(&self.path)?;
        let backup = Backup::new(connection, &mut target)?;
        while between(self) {
            let step = backup.step(STEP)?;
            *self.progress.0.lock() = Some(progress_of(&backup));
            if step == StepResult::Done {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The copy, whose name is gone: its space is free again once it was read, also after a crash.
    fn finished(&self) -> Result<Snapshot> {
        let file = File::open(&self.path).map_err(Fault::Copy)?;
        let bytes = file.metadata().map_err(Fault::Copy)?.len();
        Ok(Snapshot { bytes, content: Box::new(file) })
    }
}

/// An empty database to copy into. It is useless after a crash, so nothing is synced.
pub(super) fn open_target(path: &Path) -> rusqlite::Result<Connection> {
    let target = Connection::open(path)?;
    target.pragma_update(None, "journal_mode", "off")?;
    target.pragma_update(None, "synchronous", "off")?;
    Ok(target)
}

pub(super) fn progress_of(backup: &Backup<'_, '_>) -> CopyProgress {
    let progress = backup.progress();
    let total = u64::try_from(progress.pagecount).unwrap_or(0);
    let left = u64::try_from(progress.remaining).unwrap_or(0);
    CopyProgress { copied_bytes: total.saturating_sub(left) * PAGE, total_bytes: total * PAGE }
}

/// Removes a copy that a process left behind which died while it made it.
pub(super) fn remove_leftover(database: &Path) {
    remove(&path_of(database));
}

fn path_of(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(".copy");
    path.into()
}

fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(%error, path = %path.display(), "a copy could not be removed");
        }
        _ => {}
    }
}
