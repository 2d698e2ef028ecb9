//! Commits outcomes: one call at a time, each with all outcomes since the last. An idle worker
//! sends an outcome at once; the outcomes of a busy worker share commits.

use std::collections::VecDeque;
use std::sync::Arc;

use duly_core::id::TaskId;
use duly_core::lease::{Finish, Finished, Outcome};
use duly_core::limits::{STORE_BATCH, STORE_BATCH_BYTES};
use duly_core::ports::work_source::{Closed, WorkSource};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::ExecutorReport;

/// Outcomes on their way to the source.
pub(super) struct Completer {
    source: Arc<dyn WorkSource>,
    waiting: VecDeque<Finish>,
    /// Bytes of the results and logs that wait.
    bytes: usize,
    call: Option<Call>,
    report: ExecutorReport,
}

/// A `finish` without an answer so far.
struct Call {
    tasks: Vec<TaskId>,
    answer: BoxFuture<'static, Result<Vec<Finished>, Closed>>,
}

impl Completer {
    pub(super) fn new(source: Arc<dyn WorkSource>) -> Self {
        Self {
            source,
            waiting: VecDeque::new(),
            bytes: 0,
            call: None,
            report: ExecutorReport::default(),
        }
    }

    /// Adds an outcome; the next call sends it.
    pub(super) fn push(&mut self, finish: Finish) {
        if finish.outcome == Outcome::Release {
            self.report.released += 1;
        }
        self.bytes += bytes_of(&finish);
        self.waiting.push_back(finish);
    }

    /// Whether so many outcomes wait that the worker should claim no more.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() > STORE_BATCH || self.bytes > STORE_BATCH_BYTES
    }

    /// Whether everything was answered.
    pub(super) fn is_idle(&self) -> bool {
        self.call.is_none() && self.waiting.is_empty()
    }

    /// Makes the next call if outcomes wait and no call is under way, and waits for the answer; for
    /// ever if there is no call. Dropping the future loses nothing: the next one polls the same
    /// call.
    pub(super) async fn answered(&mut self) -> Result<(), Closed> {
        if self.call.is_none() && !self.waiting.is_empty() {
            self.call = Some(self.next_call());
        }
        let Some(call) = &mut self.call else { return std::future::pending().await };
        let answer = (&mut call.answer).await;
        let tasks = self.call.take().map(|call| call.tasks).unwrap_or_default();
        match answer {
            Ok(answers) => self.note(&tasks, &answers),
            Err(Closed) => {
                self.report.unanswered += tasks.len();
                return Err(Closed);
            }
        }
        Ok(())
    }

    /// The final counts. Outcomes without an answer count as unanswered.
    pub(super) fn into_report(mut self) -> ExecutorReport {
        self.report.unanswered += self.waiting.len() + self.call.map_or(0, |call| call.tasks.len());
        self.report
    }

    fn next_call(&mut self) -> Call {
        let mut batch = Vec::with_capacity(self.waiting.len().min(STORE_BATCH));
        let mut bytes = 0;
        while let Some(next) = self.waiting.front() {
            bytes += bytes_of(next);
            let full = batch.len() == STORE_BATCH || bytes > STORE_BATCH_BYTES;
            if full && !batch.is_empty() {
                break;
            }
            batch.extend(self.waiting.pop_front());
        }
        self.bytes -= batch.iter().map(bytes_of).sum::<usize>();
        let tasks = batch.iter().map(|finish| finish.task).collect();
        let source = Arc::clone(&self.source);
        Call { tasks, answer: async move { source.finish(batch).await }.boxed() }
    }

    fn note(&mut self, tasks: &[TaskId], answers: &[Finished]) {
        if tasks.len() != answers.len() {
            let (sent, answered) = (tasks.len(), answers.len());
            tracing::warn!(sent, answered, "the source answered another number of outcomes");
        }
        for (task, answer) in tasks.iter().zip(answers) {
            match answer {
                Finished::Done => self.report.done += 1,
                Finished::LeaseLost => {
                    self.report.lost += 1;
                    tracing::debug!(task.id = %task, "the lease was taken back before the outcome");
                }
                Finished::Unknown => {
                    self.report.lost += 1;
                    tracing::warn!(task.id = %task, "the source does not know a task that ended");
                }
            }
        }
    }
}

fn bytes_of(finish: &Finish) -> usize {
    let result = match &finish.outcome {
        Outcome::Success { result: Some(result) } => result.len(),
        _ => 0,
    };
    let checkpoint = finish.progress.as_ref().and_then(|it| it.checkpoint.as_ref());
    let log = finish.log.as_ref().map(|log| &log.text);
    result + [checkpoint, log].into_iter().flatten().map(|text| text.len()).sum::<usize>()
}
