//! Events as CloudEvents 1.0, for the stream, brokers and notifications alike.

mod data;

use duly_core::event::{About, EventKind};
use duly_core::id::TaskId;
use duly_core::ports::event_sink::Delivery;
use duly_core::task::Task;
use duly_core::time::Timestamp;
use duly_core::trace::TraceParent;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

pub use self::data::{
    LeaderChangedData, NodeData, QueuePausedData, QueueResumedData, ScheduleFiredData,
    ScheduleSkippedData, SettingsChangedData, WorkflowEndedData, WorkflowStartedData,
};
use super::TaskView;
use super::task::verbatim;

/// Something that has happened: a CloudEvent 1.0 in its JSON format.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CloudEvent {
    /// The version of CloudEvents: `1.0`.
    #[cfg_attr(feature = "openapi", schema(example = "1.0"))]
    pub specversion: String,
    /// The same at each delivery of this event, and that of no other.
    #[cfg_attr(feature = "openapi", schema(example = "1900000000000-7-1"))]
    pub id: String,
    /// `/tenants/` and the name of the tenant; `/` for what concerns the installation.
    #[cfg_attr(feature = "openapi", schema(example = "/tenants/default"))]
    pub source: String,
    /// What has happened, and the version of `data`.
    #[cfg_attr(feature = "openapi", schema(example = "dev.duly.task.succeeded.v1"))]
    pub r#type: String,
    /// To what: the id of a task or a workflow, or the name of what has none.
    pub subject: String,
    /// When, by the store's clock.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub time: Timestamp,
    /// Always `application/json`.
    #[cfg_attr(feature = "openapi", schema(example = "application/json"))]
    pub datacontenttype: String,
    /// The trace in which the task was submitted, as in the header of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The run of the task, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// The epoch of the task: the events of one task have it in ascending order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u32>,
    /// The task as it is when the event is delivered, without its payload; for a task that is gone, its id,
    /// type and queue; for everything else what there is to say of it.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub data: Box<RawValue>,
}

/// What is left to say of a task that is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GoneTask {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub task_id: TaskId,
    /// The name of its handler.
    pub r#type: String,
    /// Where it waited.
    pub queue: String,
}

impl CloudEvent {
    /// The event in this form. The payload of its task is never part of it.
    pub fn of(delivery: &Delivery) -> Self {
        let event = &delivery.event;
        let (subject, run, epoch, data) = match &event.about {
            About::Task { id, run, epoch } => {
                (id.to_string(), Some(*run), Some(*epoch), task_data(*id, delivery))
            }
            About::Other { subject, data } => (subject.clone(), None, None, verbatim(data)),
        };
        let task = delivery.task.as_deref();
        Self {
            specversion: "1.0".to_owned(),
            id: delivery.id(),
            source: match &event.place.tenant {
                Some(tenant) => format!("/tenants/{tenant}"),
                None => "/".to_owned(),
            },
            r#type: type_of(event.kind),
            subject,
            time: event.at,
            datacontenttype: "application/json".to_owned(),
            traceparent: task.and_then(|task| TraceParent::of(&task.labels)).map(str::to_owned),
            run,
            epoch,
            data,
        }
    }

    /// What has happened, if this version knows it.
    pub fn kind(&self) -> Option<EventKind> {
        EventKind::ALL.into_iter().find(|kind| type_of(*kind) == self.r#type)
    }

    /// The task, if the event is about one that is still there.
    pub fn task(&self) -> Option<TaskView> {
        serde_json::from_str(self.data.get()).ok()
    }
}

/// The type of the events of a kind.
pub fn type_of(kind: EventKind) -> String {
    format!("dev.duly.{kind}.v1")
}

fn task_data(id: TaskId, delivery: &Delivery) -> Box<RawValue> {
    let written = match &delivery.task {
        Some(task) => to_raw_value(&without_payload(task)),
        None => {
            let place = &delivery.event.place;
            let text = |name: Option<String>| name.unwrap_or_default();
            to_raw_value(&GoneTask {
                task_id: id,
                r#type: text(place.task_type.as_ref().map(ToString::to_string)),
                queue: text(place.queue.as_ref().map(ToString::to_string)),
            })
        }
    };
    written.expect("wire types can always be written as JSON")
}

/// A task as events show it: with `null` for its payload.
pub fn without_payload(task: &Task) -> TaskView {
    TaskView::from(Task { payload: "null".into(), ..task.clone() })
}

#[cfg(test)]
mod tests;
