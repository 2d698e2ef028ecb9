//! What the stream of events tells beside events.

use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Count, QueueView};

/// A message of a stream, as server-sent events write it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StreamMessage {
    /// `stats`, `task`, `workflow`, `event`, `gone`, `reset` or `closed`.
    #[cfg_attr(
        feature = "openapi",
        schema(pattern = "^(stats|task|workflow|event|gone|reset|closed)$", example = "event")
    )]
    pub event: String,
    /// The place of a message of the full stream; others have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// JSON: by the name of the message a StatsView, Task, Workflow, CloudEvent, TopicGone, empty object or
    /// StreamClosed.
    pub data: String,
}

/// The queues of a tenant at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StatsView {
    /// When, by the store's clock.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// The first 200 queues by name.
    pub queues: Vec<QueueStatsView>,
    /// Whether there are others.
    pub more: bool,
    /// What these queues have together.
    pub totals: StatsTotals,
}

/// A queue at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueStatsView {
    /// The queue.
    #[serde(flatten)]
    pub queue: QueueView,
    /// How long the due task has waited that waits longest; 0 if none is due.
    pub lateness_seconds: f64,
}

/// What several queues have together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StatsTotals {
    /// Tasks that wait, for their time or for a worker.
    pub waiting: Count,
    /// Those of them that are due.
    pub due: Count,
    /// Tasks that run.
    pub running: Count,
    /// Tasks that failed and wait for a person.
    pub dead: Count,
    /// Tasks submitted through the server that answers, per second over the last minute.
    pub submitted_per_second: f64,
    /// Tasks started through the server that answers, per second over the last minute.
    pub started_per_second: f64,
    /// The longest lateness.
    pub lateness_seconds: f64,
}

/// A topic whose object does not exist, or not any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TopicGone {
    /// The topic, as it was asked for.
    pub topic: String,
}

/// Why the server ends a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StreamClosed {
    /// Stable, upper-case reason for programs.
    #[cfg_attr(feature = "openapi", schema(example = "TOKEN_EXPIRED"))]
    pub code: String,
    /// The same in words.
    pub detail: String,
}

impl StatsView {
    /// What these queues are together.
    pub fn new(at: Timestamp, queues: Vec<QueueStatsView>, more: bool) -> Self {
        let totals = StatsTotals::of(&queues);
        Self { at, queues, more, totals }
    }
}

impl StatsTotals {
    fn of(queues: &[QueueStatsView]) -> Self {
        let count = |of: fn(&QueueView) -> Count| {
            let counts = queues.iter().map(|it| of(&it.queue));
            let add = |all: Count, one: Count| Count {
                count: all.count.saturating_add(one.count),
                more: all.more || one.more,
            };
            counts.fold(Count { count: 0, more: false }, add)
        };
        Self {
            waiting: count(|queue| queue.waiting),
            due: count(|queue| queue.due),
            running: count(|queue| queue.running),
            dead: count(|queue| queue.dead),
            submitted_per_second: queues.iter().map(|it| it.queue.submitted_per_second).sum(),
            started_per_second: queues.iter().map(|it| it.queue.started_per_second).sum(),
            lateness_seconds: queues.iter().map(|it| it.lateness_seconds).fold(0.0, f64::max),
        }
    }
}
