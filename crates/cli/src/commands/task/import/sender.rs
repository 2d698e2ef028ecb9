//! Sending batches until they are answered, through whatever keeps the server away.

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

/// The first and the longest wait for a server that is away or busy and does not say how long.
const WAITS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// The longest wait that a server may ask for: it may be well again before.
const LONGEST_ASKED: Duration = Duration::from_secs(60);
/// A server that is busy now and then is not worth a word each time.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// A batch, and what became of each of its tasks.
pub(super) struct Answered {
    pub(super) batch: Batch,
    pub(super) answers: Vec<Result<Taken, Problem>>,
}

/// A task that the server has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) id: TaskId,
    /// Whether it was there before this import sent it.
    pub(super) existed: bool,
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
        let tasks = std::mem::take(&mut batch.tasks);
        let mut answers = Answers(vec![None; tasks.len()]);
        let places = (0..tasks.len()).collect();
        let mut parts = vec![Part { places, tasks, was_sent: false }];
        let mut waits = Waits::new();
        while let Some(mut part) = parts.pop() {
            if part.tasks.is_empty() {
                continue;
            }
            let (why, asked) = match self.client.submit_batch(&part.tasks).await {
                Ok(answer) => match answers.take(&mut part, answer.items)? {
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
        Ok(Some(Answered { batch, answers: answers.0.into_iter().flatten().collect() }))
    }

    /// Says once for all batches why it takes longer.
    fn say(&self, why: &str) {
        if self.said.get().is_none_or(|at| at.elapsed() >= SAY_EVERY) {
            self.said.set(Some(Instant::now()));
            self.progress.say(&format!("{why}\ntrying again until it works; Ctrl-C stops"));
        }
    }
}

/// Tasks of a batch that have no answer yet, and where they stand in it.
struct Part {
    places: Vec<usize>,
    tasks: Vec<SubmitRequest>,
    /// Whether they were sent before: the server may have taken them although its answer was lost.
    was_sent: bool,
}

impl Part {
    /// Keeps the first half and returns the second; nothing of a task that stands alone.
    fn halve(&mut self) -> Option<Self> {
        let half = self.tasks.len().div_ceil(2);
        (half < self.tasks.len()).then(|| Self {
            places: self.places.split_off(half),
            tasks: self.tasks.split_off(half),
            was_sent: self.was_sent,
        })
    }
}

/// What is known of each task of a batch.
struct Answers(Vec<Option<Result<Taken, Problem>>>);

impl Answers {
    /// Takes the answers to a part, and leaves in it what may be taken later. Returns why, if
    /// there is any.
    fn take(&mut self, part: &mut Part, items: Vec<BatchItem>) -> anyhow::Result<Option<String>> {
        if items.len() != part.tasks.len() {
            bail!("the server answered {} of {} tasks", items.len(), part.tasks.len());
        }
        let mut why = None;
        for (item, &place) in items.into_iter().zip(&part.places) {
            match item {
                BatchItem::Accepted { task_id, replayed, .. } => {
                    let existed = replayed && !part.was_sent;
                    self.0[place] = Some(Ok(Taken { id: task_id, existed }));
                }
                BatchItem::Refused { problem, .. } if may_pass(&problem) => {
                    why = Some(problem.to_string());
                }
                BatchItem::Refused { problem, .. } => self.0[place] = Some(Err(problem)),
            }
        }
        let mut is_left = part.places.iter().map(|&place| self.0[place].is_none());
        part.tasks.retain(|_| is_left.next().unwrap_or_default());
        part.places.retain(|&place| self.0[place].is_none());
        Ok(why)
    }

    /// Rejects a part that not even a request of its own can carry.
    fn reject(&mut self, part: &Part, error: &Error) {
        for &place in &part.places {
            self.0[place] = Some(Err(match error {
                Error::Problem { problem, .. } => (**problem).clone(),
                // Not the server but something before it.
                _ => *line::refused(&error.to_string()),
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

    /// The next wait: what the server asked for, within reason, or longer than the last one.
    fn next(&mut self, asked: Option<Duration>) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(WAITS.1);
        asked.map_or(wait, |asked| asked.clamp(WAITS.0, LONGEST_ASKED))
    }
}

/// Whether the same task may be taken later.
fn may_pass(problem: &Problem) -> bool {
    matches!(problem.status, 429 | 503)
}

/// Whether fewer tasks at once may do.
fn is_too_large(error: &Error) -> bool {
    error.status() == Some(413)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_halved_until_each_task_stands_alone() {
        let tasks = ["a", "b", "c", "d", "e"].map(SubmitRequest::new).to_vec();
        let mut parts = vec![Part { places: (0..5).collect(), tasks, was_sent: false }];
        let (mut alone, mut cuts) = (Vec::new(), 0);
        while let Some(mut part) = parts.pop() {
            match part.halve() {
                Some(rest) => {
                    cuts += 1;
                    parts.extend([rest, part]);
                }
                None => alone.push((part.places[0], part.tasks[0].r#type.clone())),
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
        assert_eq!(waits.next(Some(seconds(86_400))), LONGEST_ASKED);
        assert_eq!(waits.next(Some(Duration::ZERO)), WAITS.0, "no storm");
        assert_eq!((0..9).map(|_| waits.next(None)).last(), Some(WAITS.1));
    }
}
