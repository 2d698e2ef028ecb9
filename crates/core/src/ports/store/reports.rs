//! What attempts tell while they run: how far they are, and what they log.

use std::sync::Arc;

use async_trait::async_trait;

use super::Result;
use crate::id::{SessionId, TaskId};
use crate::log::LogChunk;
use crate::name::TenantName;
use crate::progress::Progress;
use crate::time::Timestamp;

/// Reports on leases.
#[derive(Clone, Debug)]
pub struct Report {
    /// Whose.
    pub session: SessionId,
    /// Which; at most [`crate::limits::STORE_BATCH`].
    pub items: Vec<ReportItem>,
}

/// A report on one lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportItem {
    /// Which task.
    pub task: TaskId,
    /// Under which grant.
    pub epoch: u32,
    /// How far it is, if that has changed.
    pub progress: Option<Progress>,
    /// What it has logged since.
    pub log: Option<LogChunk>,
}

/// What became of one [`ReportItem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// Stored, now or by an earlier call.
    Done,
    /// The lease was taken back before; nothing changed.
    LeaseLost,
    /// There is no such task.
    Unknown,
}

/// A place in the logs of a task: everything before it has been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// In the log of which attempt, by its grant.
    pub epoch: u32,
    /// After how many bytes of it.
    pub offset: u64,
}

/// Which part of a task's logs.
#[derive(Clone, Debug)]
pub struct ReadLogs {
    /// Whose.
    pub tenant: TenantName,
    /// Of which task.
    pub task: TaskId,
    /// Of one attempt only, by its grant.
    pub epoch: Option<u32>,
    /// From here on.
    pub after: LogPosition,
    /// About how many bytes, but at least one piece; each piece counts for
    /// [`LOG_PIECE_OVERHEAD`](crate::limits::LOG_PIECE_OVERHEAD) more than its text.
    pub limit: usize,
}

/// A piece of a log as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPart {
    /// Which run of the task.
    pub run: u32,
    /// Which attempt of the run.
    pub attempt: u32,
    /// Under which grant.
    pub epoch: u32,
    /// How many bytes of the attempt's log come before it.
    pub offset: u64,
    /// When the last of it was stored.
    pub at: Timestamp,
    /// The text.
    pub text: Arc<str>,
}

impl LogPart {
    /// The place right after it.
    pub fn end(&self) -> LogPosition {
        let offset = self.offset.saturating_add(self.text.len() as u64);
        LogPosition { epoch: self.epoch, offset }
    }

    /// What of it comes after a place, from a whole character on; nothing if all of it has been
    /// read. A piece may have grown since the place was right after it.
    pub fn after(self, place: LogPosition) -> Option<Self> {
        if self.epoch != place.epoch {
            return (self.epoch > place.epoch).then_some(self);
        }
        let known = usize::try_from(place.offset.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let skipped = self.text.ceil_char_boundary(known);
        let (offset, text) = (self.offset + skipped as u64, self.text.get(skipped..)?);
        (!text.is_empty()).then(|| Self { offset, text: text.into(), ..self })
    }
}

/// A part of a task's logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// The pieces, oldest attempt first.
    pub parts: Vec<LogPart>,
    /// Where to go on.
    pub next: LogPosition,
    /// Whether more may be logged: the run has not ended, or the attempt asked for has not.
    pub live: bool,
}

/// What running attempts tell.
///
/// A report is conditional like an outcome, on task, epoch, session and RUNNING. Making it again
/// changes nothing: the last progress counts, and of a log only what lies beyond what is there is
/// added. What follows right after the last piece becomes part of it, as long as that has no more
/// than [`crate::limits::LOG_PIECE_BYTES`] then; all else is a piece of its own. Of each attempt at
/// least the last [`crate::limits::LOG_BYTES`] of its log are kept, in the last
/// [`crate::limits::LOG_PIECES`] pieces, and older pieces are dropped whole; of a task, those of its
/// last [`crate::limits::ATTEMPTS`] grants.
#[async_trait]
pub trait Reports {
    /// Stores how far attempts are and what they log; one answer per item, in order.
    async fn report(&self, report: Report) -> Result<Vec<Reported>>;

    /// What the attempts of a task have logged, whatever became of them; nothing if the task is
    /// absent.
    async fn logs(&self, read: ReadLogs) -> Result<Option<LogPage>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_a_place_starts_with_a_whole_character() {
        let at = Timestamp::from_millis(1);
        let part = LogPart { run: 1, attempt: 1, epoch: 2, offset: 10, at, text: "añb".into() };
        let left = |epoch, offset| {
            let left = part.clone().after(LogPosition { epoch, offset });
            left.map(|left| (left.offset, left.text.to_string()))
        };
        let rest = |offset, text: &str| Some((offset, text.to_owned()));
        for (offset, expected) in [
            (0, rest(10, "añb")),
            (10, rest(10, "añb")),
            (11, rest(11, "ñb")),
            (12, rest(13, "b")),
            (13, rest(13, "b")),
            (14, None),
            (u64::MAX, None),
        ] {
            assert_eq!(left(2, offset), expected, "after {offset}");
        }
        assert_eq!(left(1, u64::MAX), rest(10, "añb"), "it is of a later attempt");
        assert_eq!(left(3, 0), None, "it is of an earlier one");
    }
}
