//! Single tasks and workflows.

use bytes::Bytes;
use duly_client::wire::TopicGone;
use duly_client::wire::event::without_payload;
use duly_engine::command::watch::{TaskFeed, WorkflowFeed};

use super::{Source, rest_after};
use crate::routes::workflows::get::view;
use crate::stream::ending::Closed;
use crate::stream::frame::Frame;

/// A task: it has no more to say once it is gone.
pub(super) struct TaskSource {
    /// As it was asked for; nothing once the task is gone.
    pub(super) topic: Option<String>,
    pub(super) feed: TaskFeed,
}

impl Source for TaskSource {
    async fn next(&mut self) -> Result<Option<Bytes>, Closed> {
        while self.topic.is_some() {
            match self.feed.next().await {
                Ok(Some(task)) => return Ok(Some(Frame::message("task", &without_payload(&task)))),
                Ok(None) => return Ok(self.topic.take().map(gone)),
                Err(error) => rest_after(error).await?,
            }
        }
        Ok(None)
    }
}

/// The same of a workflow.
pub(super) struct WorkflowSource {
    pub(super) topic: Option<String>,
    pub(super) feed: WorkflowFeed,
}

impl Source for WorkflowSource {
    async fn next(&mut self) -> Result<Option<Bytes>, Closed> {
        while self.topic.is_some() {
            match self.feed.next().await {
                Ok(Some(found)) => return Ok(Some(Frame::message("workflow", &view(found)))),
                Ok(None) => return Ok(self.topic.take().map(gone)),
                Err(error) => rest_after(error).await?,
            }
        }
        Ok(None)
    }
}

/// Says alike that there is no such object, that it is another tenant's, and that it was deleted.
pub(super) fn gone(topic: String) -> Bytes {
    Frame::message("gone", &TopicGone { topic })
}
