//! Submit tasks.

use duly_core::task::Task;

/// A task that was taken.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The task as committed.
    pub task: Task,
    /// Whether an idempotency key led to a task that was there before.
    pub replayed: bool,
    /// Whether no live worker has a handler for its type.
    pub unserved: bool,
}

/// Why one item of a submit was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Due later than the system looks ahead.
    #[error("runAt lies more than 400 days ahead")]
    TooFarAhead,
    /// The idempotency key came with another body before.
    #[error("this idempotency key was used within the last 24 hours with a different body")]
    KeyReused,
    /// The task would open one lane too many.
    #[error("the installation already holds the largest number of distinct queue and type pairs")]
    LaneLimit,
}

/// Why no item of a submit was taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// More waits for the store than it can take; come back in a moment.
    #[error("too many submissions are waiting for the store")]
    Overloaded,
    /// The engine is shutting down.
    #[error("the server is shutting down")]
    Closed,
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] std::sync::Arc<duly_core::ports::store::Error>),
}
