//! Sends batches and retries until they are answered.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::bail;
use duly_client::wire::{BatchItem, Problem, SubmitRequest};
use duly_client::{Client, Error};
use duly_core::id::TaskId;
use tokio_util::sync::CancellationToken;

use super::line;
use super::progress::Progress;
use super::reader::Batch;

/// The first and the longest wait before a retry without `Retry-After`.
const WAITS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// The longest `Retry-After` that is honoured: the server may recover earlier.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);
/// The shortest interval between two messages about retries.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// A batch with the answer for each task.
pub(super) struct AnsweredBatch {
    pub(super) batch: Batch,
    pub(super) answers: Vec<Result<AcceptedTask, Problem>>,
}

/// A task that the server has accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct AcceptedTask {
    pub(super) id: TaskId,
    /// Whether it existed before this import sent it.
    pub(super) existed: bool,
}

/// Sends all batches in flight.
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

    /// Sends a batch until every task is accepted or rejected. Returns none if it was stopped before:
    /// some tasks may be accepted, which their keys reveal later.
    pub(super) async fn send(&self, mut batch: Batch) -> anyhow::Result<Option<AnsweredBatch>> {
        let tasks = std::mem::take(&mut batch.tasks);
        let mut answers = Answers(vec![None; tasks.len()]);
        let indexes = (0..tasks.len()).collect();
        let mut parts = vec![Part { indexes, tasks, was_sent: false }];
        let mut waits = Waits::new();
        while let Some(mut part) = parts.pop() {
            if part.tasks.is_empty() {
                continue;
            }
            let (why, asked) = match self.client.submit_batch(&part.tasks).await {
                Ok(answer) => match answers.store(&mut part, answer.items)? {
                    Some(why) => (why, None),
                    None => continue,
                },
                Err(error) if is_too_large(&error) => {
                    match part.halve() {
                        Some(rest) => parts.extend([rest, part]),
                        None => answers.reject(&part, &error),
                    }
                    continue;
                }
                Err(error) if error.is_retryable() => (error.to_string(), error.retry_after()),
                Err(error) => return Err(error.into()),
            };
            part.was_sent = true;
            parts.push(part);
            self.say(&why);
            tokio::select! {
                () = tokio::time::sleep(waits.next(asked)) => {}
                () = self.stop.cancelled() => return Ok(None),
            }
        }
        Ok(Some(AnsweredBatch { batch, answers: answers.0.into_iter().flatten().collect() }))
    }

    /// Prints the reason of a retry, once for all batches.
    fn say(&self, why: &str) {
        if self.said.get().is_none_or(|at| at.elapsed() >= SAY_EVERY) {
            self.said.set(Some(Instant::now()));
            self.progress.say(&format!("{why}\nretrying until it works; Ctrl-C stops"));
        }
    }
}

/// Tasks of a batch without an answer, and their indexes in it.
struct Part {
    indexes: Vec<usize>,
    tasks: Vec<SubmitRequest>,
    /// Whether they were sent before: the server may have accepted them although its answer was lost.
    was_sent: bool,
}

impl Part {
    /// Keeps the first half and returns the second; none for a single task.
    fn halve(&mut self) -> Option<Self> {
        let half = self.tasks.len().div_ceil(2);
        (half < self.tasks.len()).then(|| Self {
            indexes: self.indexes.split_off(half),
            tasks: self.tasks.split_off(half),
            was_sent: self.was_sent,
        })
    }
}

/// The answers for the tasks of a batch.
struct Answers(Vec<Option<Result<AcceptedTask, Problem>>>);

impl Answers {
    /// Stores the final answers to a part, and leaves the retryable tasks in it. Returns the reason
    /// for a retry, if any.
    fn store(&mut self, part: &mut Part, items: Vec<BatchItem>) -> anyhow::Result<Option<String>> {
        if items.len() != part.tasks.len() {
            bail!(
                "the server answered {} of {} tasks; check its version",
                items.len(),
                part.tasks.len()
            );
        }
        let mut why = None;
        for (item, &index) in items.into_iter().zip(&part.indexes) {
            match item {
                BatchItem::Accepted { task_id, replayed, .. } => {
                    let existed = replayed && !part.was_sent;
                    self.0[index] = Some(Ok(AcceptedTask { id: task_id, existed }));
                }
                BatchItem::Refused { problem, .. } if is_retryable(&problem) => {
                    why = Some(problem.to_string());
                }
                BatchItem::Refused { problem, .. } => self.0[index] = Some(Err(problem)),
            }
        }
        let mut is_left = part.indexes.iter().map(|&index| self.0[index].is_none());
        part.tasks.retain(|_| is_left.next().unwrap_or_default());
        part.indexes.retain(|&index| self.0[index].is_none());
        Ok(why)
    }

    /// Rejects a single task that is too large for a request.
    fn reject(&mut self, part: &Part, error: &Error) {
        for &index in &part.indexes {
            self.0[index] = Some(Err(match error {
                Error::Problem { problem, .. } => (**problem).clone(),
                // A proxy answered, not the server.
                _ => *line::too_large(&error.to_string()),
            }));
        }
    }
}

/// Growing waits.
struct Waits {
    next: Duration,
}

impl Waits {
    fn new() -> Self {
        Self { next: WAITS.0 }
    }

    /// The next wait: the bounded `Retry-After`, or twice the last wait.
    fn next(&mut self, retry_after: Option<Duration>) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(WAITS.1);
        retry_after.map_or(wait, |asked| asked.clamp(WAITS.0, LONGEST_RETRY_AFTER))
    }
}

/// Whether a retry may succeed.
fn is_retryable(problem: &Problem) -> bool {
    matches!(problem.status, 429 | 503)
}

/// Whether a smaller batch may succeed.
fn is_too_large(error: &Error) -> bool {
    error.status() == Some(413)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_halved_until_each_task_stands_alone() {
        let tasks = ["a", "b", "c", "d", "e"].map(SubmitRequest::new).to_vec();
        let mut parts = vec![Part { indexes: (0..5).collect(), tasks, was_sent: false }];
        let (mut alone, mut cuts) = (Vec::new(), 0);
        while let Some(mut part) = parts.pop() {
            match part.halve() {
                Some(rest) => {
                    cuts += 1;
                    parts.extend([rest, part]);
                }
                None => alone.push((part.indexes[0], part.tasks[0].r#type.clone())),
            }
        }
        let expected = ["a", "b", "c", "d", "e"].map(str::to_owned);
        assert_eq!(alone, expected.into_iter().enumerate().collect::<Vec<_>>());
        assert_eq!(cuts, 4);
    }

    #[test]
    fn waits_grow_to_a_bound_unless_the_server_says() {
        let mut waits = Waits::new();
        let seconds = Duration::from_secs;
        assert_eq!((waits.next(None), waits.next(None)), (WAITS.0, WAITS.0 * 2));
        assert_eq!(waits.next(Some(seconds(5))), seconds(5));
        assert_eq!(waits.next(Some(seconds(86_400))), LONGEST_RETRY_AFTER);
        assert_eq!(waits.next(Some(Duration::ZERO)), WAITS.0, "no storm");
        assert_eq!((0..9).map(|_| waits.next(None)).last(), Some(WAITS.1));
    }
}
