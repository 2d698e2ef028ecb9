//! What receives events: a broker, notifications, or an application that embeds the engine.

use std::sync::Arc;

use async_trait::async_trait;

use crate::event::{Event, Position};
use crate::task::Task;

/// An event on its way to a sink.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// Where it is stored.
    pub position: Position,
    /// The event.
    pub event: Event,
    /// The task that it is about, as it is by now, as far as the sink asks for it. Nothing if it is gone.
    pub task: Option<Arc<Task>>,
}

impl Delivery {
    /// Names the event: the same at each delivery, and of no other event.
    pub fn id(&self) -> String {
        let Position { number, index, .. } = self.position;
        format!("{}-{number}-{index}", self.event.at.millis())
    }
}

/// What a sink is told of the tasks that events are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Details {
    /// Ids, runs and epochs, which are in the events.
    Ids,
    /// The tasks without payloads.
    Tasks,
    /// The tasks.
    Payloads,
}

/// Events were not taken. They are delivered again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotTaken(
    /// Why, for people.
    pub String,
);

/// Receives events: at least once, those of one task in the order of its changes.
#[async_trait]
pub trait EventSink: Send + Sync {
    /// What it has to be told of tasks.
    fn details(&self) -> Details {
        Details::Tasks
    }

    /// Takes events. What was answered with `Ok` is not delivered again unless its relay ends before it
    /// has saved that; after `NotTaken` all of them are. The call may be dropped when another node takes
    /// over.
    async fn take(&self, events: &[Delivery]) -> Result<(), NotTaken>;
}
