//! The progress, checkpoint and log lines of one attempt while it runs. Adding to them is cheap
//! and never waits; the executor collects and reports what is new, and the rest goes with the
//! outcome.

use std::fmt::{Display, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use duly_core::id::TaskId;
use duly_core::limits::{CONCURRENCY, LOG_BYTES};
use duly_core::log::{LogChunk, plain};
use duly_core::ports::store::ReportItem;
use duly_core::progress::Progress;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The notes of one attempt. They use no memory until the first one.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The attempt and its worker's queue; `None` outside of a worker.
    attempt: Option<ReportedAttempt>,
    /// Whether the attempt is over.
    closed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct ReportedAttempt {
    task: TaskId,
    epoch: u32,
    queue: Arc<ReportQueue>,
}

#[derive(Debug, Default)]
struct State {
    /// The end of the log that is not known to be stored.
    text: String,
    /// How many bytes were logged before it.
    offset: u64,
    progress: Option<Progress>,
    /// Counts the changes of the progress.
    changes: u64,
    /// The last change that is known to be stored.
    acknowledged: u64,
    /// Whether the notes are in the queue.
    queued: bool,
}

/// What is new about an attempt, to be reported.
#[derive(Debug)]
pub(crate) struct PendingReport {
    pub(crate) notes: Arc<Notes>,
    pub(crate) item: ReportItem,
    changes: u64,
}

/// The attempts of a worker that have something to report.
#[derive(Debug, Default)]
pub(crate) struct ReportQueue {
    queued: Mutex<Vec<Arc<Notes>>>,
    added: Notify,
}

impl ReportQueue {
    /// Waits until the queue is not empty.
    pub(crate) async fn not_empty(&self) {
        loop {
            // Created before the check, so that notes added in between are not missed.
            let added = self.added.notified();
            if !self.queued.lock().is_empty() {
                return;
            }
            added.await;
        }
    }

    fn add(&self, notes: Arc<Notes>) {
        let mut queued = self.queued.lock();
        // No more attempts than this run, so at least half of the queued ones have ended.
        if queued.len() >= 2 * CONCURRENCY {
            queued.retain(|notes| !notes.is_closed());
        }
        queued.push(notes);
        drop(queued);
        self.added.notify_one();
    }

    /// Takes all notes.
    pub(crate) fn take(&self) -> Vec<Arc<Notes>> {
        std::mem::take(&mut self.queued.lock())
    }
}

impl Notes {
    /// Notes that join the queue when they change.
    pub(crate) fn new(queue: &Arc<ReportQueue>, task: TaskId, epoch: u32) -> Arc<Self> {
        let attempt = Some(ReportedAttempt { task, epoch, queue: Arc::clone(queue) });
        Arc::new(Self { attempt, ..Self::default() })
    }

    /// Adds a line to the log.
    pub(crate) fn log(self: &Arc<Self>, line: impl Display) {
        self.change(|state| {
            // If `Display` fails, the part before the failure is kept.
            let _ = writeln!(Tail(state), "{line}");
        });
    }

    /// Replaces the progress; a checkpoint stays.
    pub(crate) fn progress(self: &Arc<Self>, progress: Progress) {
        self.change(|state| {
            let checkpoint = state.progress.take().and_then(|last| last.checkpoint);
            state.progress = Some(Progress { checkpoint, ..progress });
            state.changes += 1;
        });
    }

    /// Sets the checkpoint for the next attempt: JSON text.
    pub(crate) fn checkpoint(self: &Arc<Self>, text: Arc<str>) {
        self.change(|state| {
            state.progress.get_or_insert_default().checkpoint = Some(text);
            state.changes += 1;
        });
    }

    fn change(self: &Arc<Self>, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        // Notes after the end of the attempt are dropped.
        if !self.is_closed() {
            change(&mut state);
            self.enqueue(&mut state);
        }
    }

    fn enqueue(self: &Arc<Self>, state: &mut State) {
        let Some(ReportedAttempt { queue, .. }) = &self.attempt else { return };
        if !self.is_closed() && !std::mem::replace(&mut state.queued, true) {
            queue.add(Arc::clone(self));
        }
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// What is new, for notes that were taken from the queue; `None` if the attempt has ended.
    pub(crate) fn pending_report(self: &Arc<Self>) -> Option<PendingReport> {
        let ReportedAttempt { task, epoch, .. } = *self.attempt.as_ref()?;
        let mut state = self.state.lock();
        state.queued = false;
        if self.is_closed() {
            return None;
        }
        let (progress, log) = state.unreported();
        let item = ReportItem { task, epoch, progress, log };
        Some(PendingReport { notes: Arc::clone(self), item, changes: state.changes })
    }

    /// Puts the notes back into the queue, because their report failed.
    pub(crate) fn requeue(self: &Arc<Self>) {
        let mut state = self.state.lock();
        self.enqueue(&mut state);
    }

    /// Puts the notes back into the queue, because the call had no room for their report.
    pub(crate) fn defer(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.queued = false;
        self.enqueue(&mut state);
    }

    /// Ends the attempt and returns what is not reported. Frees the memory, although the notes may
    /// stay in the queue for a while.
    pub(crate) fn close(&self) -> (Option<Progress>, Option<LogChunk>) {
        let mut state = self.state.lock();
        self.closed.store(true, Ordering::Release);
        let left = state.unreported();
        *state = State::default();
        left
    }

    /// The end of what was logged and not reported yet.
    pub(crate) fn logged(&self) -> Option<Arc<str>> {
        self.state.lock().unreported().1.map(|log| log.text)
    }
}

impl PendingReport {
    /// Removes what this report holds from the notes: it is stored.
    pub(crate) fn acknowledge(&self) {
        let mut state = self.notes.state.lock();
        state.acknowledged = state.acknowledged.max(self.changes);
        let stored = self.item.progress.as_ref().and_then(|it| it.checkpoint.as_ref());
        if let (Some(stored), Some(progress)) = (stored, &mut state.progress)
            && progress.checkpoint.as_ref().is_some_and(|it| Arc::ptr_eq(it, stored))
        {
            // Progress without a checkpoint leaves the stored checkpoint as it is.
            progress.checkpoint = None;
        }
        let end = self.item.log.as_ref().map_or(0, LogChunk::end);
        let known = usize::try_from(end.saturating_sub(state.offset)).unwrap_or(usize::MAX);
        let known = known.min(state.text.len());
        state.text.drain(..known);
        state.offset += known as u64;
    }

    /// Whether the attempt still runs.
    pub(crate) fn is_open(&self) -> bool {
        !self.notes.is_closed()
    }
}

impl State {
    fn unreported(&self) -> (Option<Progress>, Option<LogChunk>) {
        let progress = self.progress.clone().filter(|_| self.changes > self.acknowledged);
        let end = end_of(&self.text);
        let offset = self.offset + (self.text.len() - end.len()) as u64;
        let log = (!end.is_empty()).then(|| LogChunk { offset, text: end.into() });
        (progress, log)
    }
}

/// Writes at the end of a log and drops the beginning, in large steps to keep it cheap.
struct Tail<'a>(&'a mut State);

impl std::fmt::Write for Tail<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let State { text: log, offset, .. } = &mut *self.0;
        let end = end_of(text);
        if log.len() + end.len() > 2 * LOG_BYTES {
            let surplus = log.len() - end_of(log).len();
            log.drain(..surplus);
            *offset += surplus as u64;
        }
        if end.len() < text.len() {
            // The text between them is skipped, so nothing before it can be kept.
            *offset += (log.len() + text.len() - end.len()) as u64;
            log.clear();
        }
        log.push_str(&plain(end));
        Ok(())
    }
}

/// The last [`LOG_BYTES`] bytes, from a whole character on.
fn end_of(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(LOG_BYTES))..]
}

#[cfg(test)]
mod tests;
