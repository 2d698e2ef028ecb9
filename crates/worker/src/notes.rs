//! What one attempt tells while it runs: how far it is and what it logs. Noting something is cheap
//! and waits for nobody; the executor collects what is new and reports it, and what it did not
//! get to goes with the outcome.

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

/// The notes of one attempt. Take no room until something is noted.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Whose they are and where they are collected; nowhere outside of a worker.
    pinned: Option<Pinned>,
    /// Whether the attempt is over.
    closed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct Pinned {
    task: TaskId,
    epoch: u32,
    board: Arc<Board>,
}

#[derive(Debug, Default)]
struct State {
    /// What was logged and is not known to be stored: its end.
    text: String,
    /// How much was logged before that.
    offset: u64,
    progress: Option<Progress>,
    /// Counts the changes of the progress.
    changes: u64,
    /// Up to which change it is known to be stored.
    heard: u64,
    /// Whether the notes are on the board.
    listed: bool,
}

/// What is new about an attempt.
#[derive(Debug)]
pub(crate) struct News {
    pub(crate) notes: Arc<Notes>,
    pub(crate) item: ReportItem,
    changes: u64,
}

/// Where attempts that have something to tell are listed.
#[derive(Debug, Default)]
pub(crate) struct Board {
    listed: Mutex<Vec<Arc<Notes>>>,
    news: Notify,
}

impl Board {
    /// Waits until something is listed.
    pub(crate) async fn filled(&self) {
        loop {
            // Armed before the look, so that nothing in between is missed.
            let news = self.news.notified();
            if !self.listed.lock().is_empty() {
                return;
            }
            news.await;
        }
    }

    fn list(&self, notes: Arc<Notes>) {
        let mut listed = self.listed.lock();
        // No more attempts run than this, so at least every other one listed is over.
        if listed.len() >= 2 * CONCURRENCY {
            listed.retain(|notes| !notes.is_closed());
        }
        listed.push(notes);
        drop(listed);
        self.news.notify_one();
    }

    /// Takes the list.
    pub(crate) fn take(&self) -> Vec<Arc<Notes>> {
        std::mem::take(&mut self.listed.lock())
    }
}

impl Notes {
    /// Notes that are listed on a board when they change.
    pub(crate) fn on(board: &Arc<Board>, task: TaskId, epoch: u32) -> Arc<Self> {
        let pinned = Some(Pinned { task, epoch, board: Arc::clone(board) });
        Arc::new(Self { pinned, ..Self::default() })
    }

    /// Adds a line to the log.
    pub(crate) fn log(self: &Arc<Self>, line: impl Display) {
        self.change(|state| {
            // A line whose `Display` fails is kept as far as it came.
            let _ = writeln!(Tail(state), "{line}");
        });
    }

    /// Says how far the attempt is; a checkpoint stays.
    pub(crate) fn progress(self: &Arc<Self>, progress: Progress) {
        self.change(|state| {
            let checkpoint = state.progress.take().and_then(|last| last.checkpoint);
            state.progress = Some(Progress { checkpoint, ..progress });
            state.changes += 1;
        });
    }

    /// Leaves a note for the next attempt: JSON text.
    pub(crate) fn checkpoint(self: &Arc<Self>, text: Arc<str>) {
        self.change(|state| {
            state.progress.get_or_insert_default().checkpoint = Some(text);
            state.changes += 1;
        });
    }

    fn change(self: &Arc<Self>, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        // What somebody says after the end is nobody's.
        if !self.is_closed() {
            change(&mut state);
            self.list(&mut state);
        }
    }

    fn list(self: &Arc<Self>, state: &mut State) {
        let Some(Pinned { board, .. }) = &self.pinned else { return };
        if !self.is_closed() && !std::mem::replace(&mut state.listed, true) {
            board.list(Arc::clone(self));
        }
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Takes the notes off the board and tells what is new, unless the attempt is over.
    pub(crate) fn news(self: &Arc<Self>) -> Option<News> {
        let Pinned { task, epoch, .. } = *self.pinned.as_ref()?;
        let mut state = self.state.lock();
        state.listed = false;
        if self.is_closed() {
            return None;
        }
        let (progress, log) = state.unheard();
        let item = ReportItem { task, epoch, progress, log };
        Some(News { notes: Arc::clone(self), item, changes: state.changes })
    }

    /// Puts the notes back on the board: their news was told and not heard.
    pub(crate) fn relist(self: &Arc<Self>) {
        let mut state = self.state.lock();
        self.list(&mut state);
    }

    /// Puts the notes back on the board, from which they were taken: their news was not told.
    pub(crate) fn put_off(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.listed = false;
        self.list(&mut state);
    }

    /// The attempt is over: what is left to tell. Nothing stays here, although the notes may still
    /// be on the board for a while.
    pub(crate) fn close(&self) -> (Option<Progress>, Option<LogChunk>) {
        let mut state = self.state.lock();
        self.closed.store(true, Ordering::Release);
        let left = state.unheard();
        *state = State::default();
        left
    }

    /// The end of what was logged and not reported yet.
    pub(crate) fn logged(&self) -> Option<Arc<str>> {
        self.state.lock().unheard().1.map(|log| log.text)
    }
}

impl News {
    /// What was told is stored.
    pub(crate) fn heard(&self) {
        let mut state = self.notes.state.lock();
        state.heard = state.heard.max(self.changes);
        let told = self.item.progress.as_ref().and_then(|it| it.checkpoint.as_ref());
        if let (Some(told), Some(progress)) = (told, &mut state.progress)
            && progress.checkpoint.as_ref().is_some_and(|it| Arc::ptr_eq(it, told))
        {
            // One that is left out leaves the last one as it is.
            progress.checkpoint = None;
        }
        let end = self.item.log.as_ref().map_or(0, LogChunk::end);
        let known = usize::try_from(end.saturating_sub(state.offset)).unwrap_or(usize::MAX);
        let known = known.min(state.text.len());
        state.text.drain(..known);
        state.offset += known as u64;
    }

    /// Whether the attempt goes on.
    pub(crate) fn is_open(&self) -> bool {
        !self.notes.is_closed()
    }
}

impl State {
    fn unheard(&self) -> (Option<Progress>, Option<LogChunk>) {
        let progress = self.progress.clone().filter(|_| self.changes > self.heard);
        let end = end_of(&self.text);
        let offset = self.offset + (self.text.len() - end.len()) as u64;
        let log = (!end.is_empty()).then(|| LogChunk { offset, text: end.into() });
        (progress, log)
    }
}

/// Writes at the end of a log and forgets the beginning, in large steps so that it costs little.
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
            // What is between the two is skipped, so nothing before it can be kept.
            *offset += (log.len() + text.len() - end.len()) as u64;
            log.clear();
        }
        log.push_str(&plain(end));
        Ok(())
    }
}

/// As much of the end as is kept, from a whole character on.
fn end_of(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(LOG_BYTES))..]
}

#[cfg(test)]
mod tests;
