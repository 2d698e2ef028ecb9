//! Logs one line when an attempt starts and one when it ends, with `-v`. Costs nothing without it.

use std::time::Duration;

use duly_core::id::TaskId;
use duly_core::lease::{Lease, Outcome};
use duly_core::name::{QueueName, TypeName};

/// The fields that both lines share; `None` if they are not logged.
pub(super) struct AttemptTrace(Option<Attempt>);

struct Attempt {
    task: TaskId,
    task_type: TypeName,
    queue: QueueName,
    number: u32,
    retries: u32,
}

impl AttemptTrace {
    /// Logs that the handler is about to start.
    pub(super) fn begin(lease: &Lease) -> Self {
        if !tracing::enabled!(tracing::Level::INFO) {
            return Self(None);
        }
        let attempt = Attempt {
            task: lease.task,
            task_type: lease.lane.task_type.clone(),
            queue: lease.lane.queue.clone(),
            number: lease.attempt,
            retries: lease.retries,
        };
        tracing::info!(
            task.id = %attempt.task, task.type = %attempt.task_type, task.queue = %attempt.queue,
            task.attempt = attempt.number, "task started"
        );
        Self(Some(attempt))
    }

    /// Logs that the attempt has ended.
    pub(super) fn end(self, outcome: &Outcome, took: Duration) {
        let Self(Some(attempt)) = self else { return };
        let (what, error) = match outcome {
            Outcome::Success { .. } => ("task completed", None),
            Outcome::Retry { error, .. } if attempt.number <= attempt.retries => {
                ("task failed, and is retried", Some(error))
            }
            Outcome::Retry { error, .. } | Outcome::Fail { error } => ("task failed", Some(error)),
            Outcome::Release => ("task handed back", None),
        };
        let error = error.map(|error| format!("{}: {}", error.code, error.message));
        tracing::info!(
            task.id = %attempt.task, task.type = %attempt.task_type, task.queue = %attempt.queue,
            task.attempt = attempt.number, duration_ms = millis(took),
            error = error.map(tracing::field::display), "{what}"
        );
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
