//! What the reference model keeps of what attempts tell while they run.

use std::sync::Arc;

use async_trait::async_trait;
use duly_core::event::EventKind;
use duly_core::id::{SessionId, TaskId};
use duly_core::limits::{
    ATTEMPTS, LOG_BYTES, LOG_EXCERPT_BYTES, LOG_PIECE_BYTES, LOG_PIECE_OVERHEAD, LOG_PIECES,
    STORE_BATCH,
};
use duly_core::log::LogChunk;
use duly_core::ports::store::{
    Error, LogPage, LogPart, ReadLogs, Report, ReportItem, Reported, Reports, Result,
};
use duly_core::progress::{Progress, ReportedProgress};
use duly_core::state::Status;
use duly_core::task::Task;
use duly_core::time::Timestamp;

use super::MemoryStore;
use super::model::{Model, holds};

#[async_trait]
impl Reports for MemoryStore {
    async fn report(&self, report: Report) -> Result<Vec<Reported>> {
        if report.items.len() > STORE_BATCH {
            return Err(Error::TooLarge { what: "a batch of reports", limit: STORE_BATCH });
        }
        Ok(self.model.lock().report(&report, self.clock.now()))
    }

    async fn logs(&self, read: ReadLogs) -> Result<Option<LogPage>> {
        Ok(self.model.lock().logs(&read))
    }
}

impl Model {
    fn report(&mut self, report: &Report, now: Timestamp) -> Vec<Reported> {
        let mut answers = Vec::new();
        for ReportItem { task, epoch, progress, log } in &report.items {
            let answer = self.hears(report.session, *task, *epoch);
            if answer == Reported::Done {
                if let Some(progress) = progress {
                    self.write_progress(*task, progress, now);
                    self.tell(EventKind::TaskProgressed, *task, now);
                }
                if let Some(chunk) = log {
                    self.write_log(*task, chunk, now);
                }
            }
            answers.push(answer);
        }
        answers
    }

    /// Whether a session may speak for a task.
    pub(super) fn hears(&self, session: SessionId, id: TaskId, epoch: u32) -> Reported {
        let Some(task) = self.tasks.get(&id) else { return Reported::Unknown };
        if self.is_foreign(session, task) {
            return Reported::Unknown;
        }
        let held = task.epoch == epoch && holds(task, session);
        if held { Reported::Done } else { Reported::LeaseLost }
    }

    /// How far a task is that its holder speaks of.
    pub(super) fn write_progress(&mut self, id: TaskId, progress: &Progress, at: Timestamp) {
        let task = self.tasks.get_mut(&id).expect("it runs");
        let before = task.progress.as_ref().and_then(|it| it.progress.checkpoint.clone());
        let checkpoint = progress.checkpoint.clone().or(before);
        let progress = Progress { checkpoint, ..progress.clone() };
        task.progress = Some(ReportedProgress { progress, at });
    }

    /// What a running task has logged.
    pub(super) fn write_log(&mut self, id: TaskId, chunk: &LogChunk, at: Timestamp) {
        let Task { run, charged, epoch, .. } = self.tasks[&id];
        let last = self.logs.range((id, epoch, 0)..=(id, epoch, u64::MAX)).next_back();
        let last = last.map(|(_, part)| part.clone());
        let known = last.as_ref().map_or(0, |last| last.end().offset);
        let Some((offset, text)) = chunk.beyond(known) else { return };
        let end = offset.saturating_add(text.len() as u64);
        let part = match last {
            Some(last) if known == offset && last.text.len() + text.len() <= LOG_PIECE_BYTES => {
                LogPart { at, text: format!("{}{text}", last.text).into(), ..last }
            }
            _ => LogPart { run, attempt: charged + 1, epoch, offset, at, text: text.into() },
        };
        self.logs.insert((id, epoch, part.offset), part);
        self.forget_beginning(id, epoch, end.saturating_sub(LOG_BYTES as u64));
        let kept = u32::try_from(ATTEMPTS).expect("a small number");
        self.forget_logs(id, epoch.saturating_sub(kept));
    }

    /// Forgets the pieces of a log before the one that holds its byte `kept_from`, and all but the
    /// last of them.
    fn forget_beginning(&mut self, id: TaskId, epoch: u32, kept_from: u64) {
        let pieces = || self.logs.range((id, epoch, 0)..=(id, epoch, u64::MAX)).rev();
        let held = pieces().find(|(key, _)| key.2 <= kept_from).map(|(key, _)| *key);
        let counted = pieces().take(LOG_PIECES).last().map(|(key, _)| *key);
        if let Some(first) = held.max(counted) {
            self.logs.retain(|key, _| (key.0, key.1) != (id, epoch) || *key >= first);
        }
    }

    /// Forgets what the attempts up to this one have logged.
    pub(super) fn forget_logs(&mut self, id: TaskId, up_to: u32) {
        self.logs.retain(|(task, epoch, _), _| *task != id || *epoch > up_to);
    }

    /// The end of what an attempt has logged.
    pub(super) fn excerpt(&self, id: TaskId, epoch: u32) -> Option<Arc<str>> {
        let parts = self.logs.range((id, epoch, 0)..=(id, epoch, u64::MAX));
        let text: String = parts.map(|(_, part)| &*part.text).collect();
        let surplus = text.len().saturating_sub(LOG_EXCERPT_BYTES);
        let end = &text[text.ceil_char_boundary(surplus)..];
        (!end.is_empty()).then(|| end.into())
    }

    fn logs(&self, read: &ReadLogs) -> Option<LogPage> {
        let task = self.get(&read.tenant, read.task)?;
        let all = self.logs.range((read.task, 0, 0)..=(read.task, u32::MAX, u64::MAX));
        let wanted = all.filter(|(key, _)| read.epoch.is_none_or(|epoch| key.1 == epoch));
        let later = wanted.filter_map(|(_, part)| part.clone().after(read.after));
        let (mut parts, mut bytes, mut next) = (Vec::new(), 0, read.after);
        for part in later {
            bytes += part.text.len() + LOG_PIECE_OVERHEAD;
            if bytes > read.limit && !parts.is_empty() {
                break;
            }
            next = part.end();
            parts.push(part);
        }
        let live = match read.epoch {
            Some(epoch) if epoch == task.epoch => task.status == Status::Running,
            Some(epoch) if epoch < task.epoch => false,
            _ => !task.status.is_terminal(),
        };
        Some(LogPage { parts, next, live })
    }
}
