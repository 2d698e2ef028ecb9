//! What a stream tells.

use serde::de::DeserializeOwned;

use crate::wire::{CloudEvent, StatsView, StreamClosed, TaskView, TopicGone, WorkflowView};

/// Something that a stream tells, or that happens to it.
#[derive(Clone, Debug)]
pub enum StreamItem {
    /// The figures of all queues.
    Stats(StatsView),
    /// A task, at first or after a change; without its payload.
    Task(Box<TaskView>),
    /// A workflow, at first or after a change.
    Workflow(Box<WorkflowView>),
    /// An event of the full stream.
    Event(Box<CloudEvent>),
    /// The object of this topic does not exist, or not any more.
    Gone(String),
    /// Events were missed: they are no longer kept.
    Reset,
    /// The connection is lost, for this reason; the stream comes back by itself.
    Interrupted(String),
    /// The connection is back. What follows comes behind what was received before.
    Resumed,
}

/// A message as it came.
pub(super) struct RawItem {
    pub(super) name: String,
    pub(super) data: String,
}

impl RawItem {
    /// What it means; nothing if this version does not know its name.
    pub(super) fn read(&self) -> serde_json::Result<Option<StreamItem>> {
        Ok(Some(match self.name.as_str() {
            "stats" => StreamItem::Stats(self.json()?),
            "task" => StreamItem::Task(self.json()?),
            "workflow" => StreamItem::Workflow(self.json()?),
            "event" => StreamItem::Event(self.json()?),
            "gone" => StreamItem::Gone(self.json::<TopicGone>()?.topic),
            "reset" => StreamItem::Reset,
            _ => return Ok(None),
        }))
    }

    /// Why the server ends the connection, if it says so.
    pub(super) fn closing(&self) -> Option<StreamClosed> {
        if self.name == "closed" { self.json().ok() } else { None }
    }

    fn json<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(&self.data)
    }
}
