//! Sending batches until they are answered, through whatever keeps the server away.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::bail;
use duly_client::Client;
use duly_client::wire::{BatchItem, Problem};
use duly_core::id::TaskId;
use tokio_util::sync::CancellationToken;

use super::progress::Progress;
use super::reader::Batch;

/// The first and the longest wait for a server that is away or busy.
const WAITS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// A server that is busy now and then is not worth a word each time.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// A batch, and what became of each of its tasks.
pub(super) struct Answered {
    pub(super) batch: Batch,
    pub(super) answers: Vec<Result<TaskId, Problem>>,
}

/// The way to the server, which all batches in flight share.
pub(super) struct Sender<'a> {
    client: &'a Client,
    progress: &'a Progress,
    /// Ends the waits, not the requests.
    stop: &'a CancellationToken,
    said: Cell<Option<Instant>>,
}

impl<'a> Sender<'a> {
    pub(super) fn new(
        client: &'a Client,
        progress: &'a Progress,
        stop: &'a CancellationToken,
    ) -> Self {
        Self { client, progress, stop, said: Cell::new(None) }
    }

    /// Sends a batch until every task was taken or refused for good. Nothing if it was stopped
    /// before: some of the tasks may have been taken, which their keys will tell.
    pub(super) async fn send(&self, mut batch: Batch) -> anyhow::Result<Option<Answered>> {
        let mut tasks = std::mem::take(&mut batch.tasks);
        let mut answers: Vec<Option<Result<TaskId, Problem>>> = vec![None; tasks.len()];
        // The places of the tasks that are left.
        let mut left: Vec<usize> = (0..tasks.len()).collect();
        let (mut wait, longest) = WAITS;
        while !tasks.is_empty() {
            let why = match self.client.submit_batch(&tasks).await {
                Ok(answer) if answer.items.len() != tasks.len() => {
                    bail!("the server answered {} of {} tasks", answer.items.len(), tasks.len())
                }
                Ok(answer) => {
                    let mut why = None;
                    for (item, &place) in answer.items.into_iter().zip(&left) {
                        match item {
                            BatchItem::Accepted { task_id, .. } => {
                                answers[place] = Some(Ok(task_id));
                            }
                            BatchItem::Refused { problem, .. } if may_pass(&problem) => {
                                why = Some(problem.to_string());
                            }
                            BatchItem::Refused { problem, .. } => {
                                answers[place] = Some(Err(problem));
                            }
                        }
                    }
                    let mut is_left = left.iter().map(|&place| answers[place].is_none());
                    tasks.retain(|_| is_left.next().unwrap_or_default());
                    left.retain(|&place| answers[place].is_none());
                    why
                }
                Err(error) if error.is_retryable() => Some(error.to_string()),
                Err(error) => return Err(error.into()),
            };
            let Some(why) = why else { continue };
            self.say(&why);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.stop.cancelled() => return Ok(None),
            }
            wait = (wait * 2).min(longest);
        }
        let answers = answers.into_iter().flatten().collect();
        Ok(Some(Answered { batch, answers }))
    }

    /// Says once for all batches why it takes longer.
    fn say(&self, why: &str) {
        if self.said.get().is_none_or(|at| at.elapsed() >= SAY_EVERY) {
            self.said.set(Some(Instant::now()));
            self.progress.say(&format!("{why}\ntrying again until it works; Ctrl-C stops"));
        }
    }
}

/// Whether the same task may be taken later.
fn may_pass(problem: &Problem) -> bool {
    matches!(problem.status, 429 | 503)
}
