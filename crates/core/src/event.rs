//! Events: what has changed, for those who want to be told. A store writes an event in the transaction
//! of the change, but only if a sink has subscribed to it.

mod kind;
mod position;
mod sink_name;
mod subscription;

use std::sync::Arc;

use serde_json::{Value, json};

pub use self::kind::{EventKind, KINDS, Kinds, NotAKind, NotKinds};
pub use self::position::{NotAPosition, Position};
pub use self::sink_name::{BadSinkName, SinkName};
pub use self::subscription::Subscription;
use crate::id::{NodeId, TaskId, WorkflowId};
use crate::name::{Lane, QueueName, ScheduleName, TenantName, TypeName};
use crate::schedule::{SkipReason, SlotRun};
use crate::time::Timestamp;
use crate::workflow::WorkflowStatus;

/// Where something has happened; what is absent does not apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Whose; without one it concerns the installation.
    pub tenant: Option<TenantName>,
    /// The queue of the task, or the queue itself.
    pub queue: Option<QueueName>,
    /// The type of the task.
    pub task_type: Option<TypeName>,
}

impl Place {
    /// Of a tenant, in no queue.
    pub fn of(tenant: TenantName) -> Self {
        Self { tenant: Some(tenant), ..Self::default() }
    }
}

impl From<&Lane> for Place {
    fn from(lane: &Lane) -> Self {
        Self {
            tenant: Some(lane.tenant.clone()),
            queue: Some(lane.queue.clone()),
            task_type: Some(lane.task_type.clone()),
        }
    }
}

/// What has changed, committed with the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What has happened.
    pub kind: EventKind,
    /// When, by the store's clock.
    pub at: Timestamp,
    /// Where.
    pub place: Place,
    /// To what.
    pub about: About,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// A task, as it was after the change.
    Task {
        /// Which.
        id: TaskId,
        /// In which run.
        run: u32,
        /// Under which epoch.
        epoch: u32,
    },
    /// Anything else.
    Other {
        /// Its id or name.
        subject: String,
        /// What there is to say: a JSON object.
        data: Arc<str>,
    },
}

impl Event {
    /// Something has happened to a task of this lane.
    pub fn of_task(
        kind: EventKind,
        lane: &Lane,
        (id, run, epoch): (TaskId, u32, u32),
        at: Timestamp,
    ) -> Self {
        Self { kind, at, place: Place::from(lane), about: About::Task { id, run, epoch } }
    }

    /// The task that it is about, if it is about one.
    pub fn task(&self) -> Option<TaskId> {
        match self.about {
            About::Task { id, .. } => Some(id),
            About::Other { .. } => None,
        }
    }

    fn other(
        kind: EventKind,
        place: Place,
        subject: impl ToString,
        data: Value,
        at: Timestamp,
    ) -> Self {
        let about = About::Other { subject: subject.to_string(), data: data.to_string().into() };
        Self { kind, at, place, about }
    }

    /// A workflow was submitted.
    pub fn workflow_started(
        tenant: &TenantName,
        id: WorkflowId,
        name: &str,
        at: Timestamp,
    ) -> Self {
        let data = json!({ "workflowId": id, "name": name });
        Self::other(EventKind::WorkflowStarted, Place::of(tenant.clone()), id, data, at)
    }

    /// All tasks of a workflow have ended.
    pub fn workflow_ended(
        tenant: &TenantName,
        id: WorkflowId,
        status: WorkflowStatus,
        at: Timestamp,
    ) -> Self {
        let data = json!({ "workflowId": id, "status": status.as_str() });
        Self::other(EventKind::WorkflowEnded, Place::of(tenant.clone()), id, data, at)
    }

    /// A slot of a schedule runs.
    pub fn schedule_fired(
        tenant: &TenantName,
        name: &ScheduleName,
        (slot, run): (Timestamp, SlotRun),
        at: Timestamp,
    ) -> Self {
        let data = match run {
            SlotRun::Task(id) => json!({ "schedule": name, "slot": slot, "taskId": id }),
            SlotRun::Workflow(id) => json!({ "schedule": name, "slot": slot, "workflowId": id }),
        };
        Self::other(EventKind::ScheduleFired, Place::of(tenant.clone()), name, data, at)
    }

    /// A slot of a schedule is skipped.
    pub fn schedule_skipped(
        tenant: &TenantName,
        name: &ScheduleName,
        (slot, reason): (Timestamp, SkipReason),
        at: Timestamp,
    ) -> Self {
        let data = json!({ "schedule": name, "slot": slot, "reason": reason.as_str() });
        Self::other(EventKind::ScheduleSkipped, Place::of(tenant.clone()), name, data, at)
    }

    /// The settings have a new version.
    pub fn settings_changed(version: u64, at: Timestamp) -> Self {
        let data = json!({ "version": version });
        Self::other(EventKind::SettingsChanged, Place::default(), "settings", data, at)
    }

    /// A queue was paused, with this note.
    pub fn queue_paused(tenant: &TenantName, queue: &QueueName, note: &str, at: Timestamp) -> Self {
        let data = json!({ "queue": queue, "note": note });
        Self::of_queue(EventKind::QueuePaused, tenant, queue, data, at)
    }

    /// A queue goes on.
    pub fn queue_resumed(tenant: &TenantName, queue: &QueueName, at: Timestamp) -> Self {
        let data = json!({ "queue": queue });
        Self::of_queue(EventKind::QueueResumed, tenant, queue, data, at)
    }

    /// A node has joined.
    pub fn node_joined(id: NodeId, name: &str, at: Timestamp) -> Self {
        let data = json!({ "nodeId": id, "name": name });
        Self::other(EventKind::NodeJoined, Place::default(), id, data, at)
    }

    /// A node has left.
    pub fn node_left(id: NodeId, name: &str, at: Timestamp) -> Self {
        let data = json!({ "nodeId": id, "name": name });
        Self::other(EventKind::NodeLeft, Place::default(), id, data, at)
    }

    /// Another node leads, or the same one under another term.
    pub fn leader_changed(id: NodeId, term: u64, at: Timestamp) -> Self {
        let data = json!({ "nodeId": id, "term": term });
        Self::other(EventKind::LeaderChanged, Place::default(), id, data, at)
    }

    fn of_queue(
        kind: EventKind,
        tenant: &TenantName,
        queue: &QueueName,
        data: Value,
        at: Timestamp,
    ) -> Self {
        let place = Place { queue: Some(queue.clone()), ..Place::of(tenant.clone()) };
        Self::other(kind, place, queue, data, at)
    }
}
