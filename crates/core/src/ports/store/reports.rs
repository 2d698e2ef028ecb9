//! What attempts tell while they run: how far they are, and what they log.

use std::sync::Arc;

use async_trait::async_trait;

use super::Result;
use crate::id::{SessionId, TaskId};
use crate::log::LogChunk;
use crate::name::TenantName;
use crate::progress::Progress;
use crate::time::Timestamp;

/// News of leases.
#[derive(Clone, Debug)]
pub struct Report {
    /// Whose.
    pub session: SessionId,
    /// Which; at most [`crate::limits::STORE_BATCH`].
    pub items: Vec<ReportItem>,
}

/// News of one lease.
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
pub struct LogPlace {
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
    pub after: LogPlace,
    /// About how many bytes, but at least one piece.
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
    /// When it was stored.
    pub at: Timestamp,
    /// The text.
    pub text: Arc<str>,
}

impl LogPart {
    /// The place right after it.
    pub fn end(&self) -> LogPlace {
        let offset = self.offset.saturating_add(self.text.len() as u64);
        LogPlace { epoch: self.epoch, offset }
    }
}

/// A part of a task's logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// The pieces, oldest attempt first.
    pub parts: Vec<LogPart>,
    /// Where to go on.
    pub next: LogPlace,
    /// Whether more may be logged: the run has not ended, or the attempt asked for has not.
    pub live: bool,
}

/// What running attempts tell.
///
/// A report is conditional like an outcome, on task, epoch, session and RUNNING. Making it again
/// changes nothing: the last progress counts, and of a log only what lies beyond what is there is
/// added. Of each attempt at least the last [`crate::limits::LOG_BYTES`] of its log are kept and
/// older pieces are dropped whole; of a task, those of its last [`crate::limits::ATTEMPTS`] grants.
#[async_trait]
pub trait Reports {
    /// Stores how far attempts are and what they log; one answer per item, in order.
    async fn report(&self, report: Report) -> Result<Vec<Reported>>;

    /// What the attempts of a task have logged, whatever became of them; nothing if the task is
    /// absent.
    async fn logs(&self, read: ReadLogs) -> Result<Option<LogPage>>;
}
