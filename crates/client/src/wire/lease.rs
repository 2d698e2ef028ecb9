//! Leases as a remote worker gets them. The types of their end are in [`finish`], those of what
//! is told before in [`report`].

pub mod finish;
pub mod report;
mod text;

use std::sync::Arc;
use std::time::Duration;

use duly_core::id::{SessionId, TaskId};
use duly_core::lease::Lease;
use duly_core::name::{Lane, QueueName, TenantName, TypeName};
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::LeaseRef;

/// A request for leases, which may wait for work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = claim_example))]
pub struct ClaimRequest {
    /// Who asks.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub session_id: SessionId,
    /// Counts the session's batches from 1. Asking again with the same number returns the batch
    /// that an earlier answer, perhaps lost, held; so it goes up only after leases arrived.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub seq: u64,
    /// How many at most.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000))]
    pub max: usize,
    /// How long to wait for work; not at all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 60))]
    pub wait_seconds: Option<f64>,
    /// Only tasks of these queues; of all that the session serves if absent. The session must have
    /// registered each of them, or no queues at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1000))]
    pub queues: Vec<String>,
    /// Only tasks of these types; of all that the session serves if absent. The session must have
    /// registered each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1000))]
    pub types: Vec<String>,
}

impl ClaimRequest {
    /// A claim that does not wait, for everything that the session serves.
    pub fn new(session_id: SessionId, seq: u64, max: usize) -> Self {
        let (queues, types) = (Vec::new(), Vec::new());
        Self { session_id, seq, max, wait_seconds: None, queues, types }
    }
}

/// A batch of leases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = claim_answer_example))]
pub struct ClaimAnswer {
    /// The request's number.
    pub seq: u64,
    /// The leases, in the order in which they should start; none when the wait was over, or when it
    /// ended early since leases of this session are gone.
    pub leases: Vec<LeaseView>,
    /// Leases that were taken back: another worker gets the task.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub lost: Vec<LeaseRef>,
    /// Leases whose task was cancelled: do not start it, or stop it.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub cancel: Vec<LeaseRef>,
}

/// The right to commit one outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "Lease", as = Lease))]
pub struct LeaseView {
    /// What to run.
    pub task: LeasedTask,
    /// The fencing token: a later grant of the same task has a higher one.
    pub epoch: u32,
    /// When the lease is overdue, by the server's clock, unless it is extended.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub deadline: Timestamp,
    /// The same for every execution of one run, so that a handler's effects can be made once.
    pub idempotency_key: String,
}

/// What a worker needs to know of a task to run it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeasedTask {
    /// Names the task for ever.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub task_id: TaskId,
    /// Names the handler.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub r#type: TypeName,
    /// Where the task waited.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub queue: QueueName,
    /// Whose it is.
    #[serde(default = "TenantName::default_tenant")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, required = true))]
    pub tenant: TenantName,
    /// Counts submit and replays, from 1.
    pub run: u32,
    /// Which attempt of the run; the first is 1.
    pub attempt: u32,
    /// How many failed attempts may be followed by another.
    pub retries: u32,
    /// How long the handler may run, if the task says; half an hour if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// When the task was due.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub run_at: Timestamp,
    /// When the lease was granted.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub leased_at: Timestamp,
    /// What the handler gets: any JSON, byte for byte as it was submitted.
    #[serde(with = "text")]
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub payload: Arc<str>,
    /// The tasks that it depends on, by their key in the workflow or by id: `taskId`, `status`,
    /// `result` and `error` of each. Absent if it depends on none.
    #[serde(with = "text::optional", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub parents: Option<Arc<str>>,
}

impl From<&Lease> for LeaseView {
    fn from(lease: &Lease) -> Self {
        Self {
            task: LeasedTask {
                task_id: lease.task,
                r#type: lease.lane.task_type.clone(),
                queue: lease.lane.queue.clone(),
                tenant: lease.lane.tenant.clone(),
                run: lease.run,
                attempt: lease.attempt,
                retries: lease.retries,
                timeout_seconds: lease.timeout.map(seconds),
                run_at: lease.run_at,
                leased_at: lease.granted_at,
                payload: Arc::clone(&lease.payload),
                parents: lease.parents.clone(),
            },
            epoch: lease.epoch,
            deadline: lease.deadline(),
            idempotency_key: lease.idempotency_key(),
        }
    }
}

impl From<LeaseView> for Lease {
    fn from(LeaseView { task, epoch, .. }: LeaseView) -> Self {
        Self {
            task: task.task_id,
            epoch,
            run: task.run,
            attempt: task.attempt,
            retries: task.retries,
            lane: Lane { tenant: task.tenant, queue: task.queue, task_type: task.r#type },
            timeout: task.timeout_seconds.and_then(duration),
            granted_at: task.leased_at,
            run_at: task.run_at,
            payload: task.payload,
            has_parents: false,
            has_children: false,
            renders: false,
            parents: task.parents,
        }
    }
}

/// A duration as JSON has it: seconds, to the millisecond.
pub fn seconds(duration: Duration) -> f64 {
    duration.as_millis() as f64 / 1000.0
}

/// The duration that JSON gives in seconds, to the millisecond; none if it cannot be one.
pub fn duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64((seconds * 1000.0).round() / 1000.0).ok()
}

#[cfg(feature = "openapi")]
fn claim_example() -> serde_json::Value {
    serde_json::json!({
        "sessionId": "01920000-0000-7000-8000-00000000000a", "seq": 7, "max": 32,
        "waitSeconds": 30
    })
}

#[cfg(feature = "openapi")]
fn claim_answer_example() -> serde_json::Value {
    serde_json::json!({"seq": 7, "leases": [{
        "task": {
            "taskId": "01920000-0000-7000-8000-000000000000", "type": "email",
            "queue": "default", "tenant": "default", "run": 1, "attempt": 1, "retries": 3,
            "timeoutSeconds": 30.0, "runAt": "2030-01-31T08:01:00.000Z",
            "leasedAt": "2030-01-31T08:01:00.003Z", "payload": {"to": "ada@example.com"}
        },
        "epoch": 1, "deadline": "2030-01-31T08:01:40.003Z",
        "idempotencyKey": "01920000-0000-7000-8000-000000000000-1"
    }], "lost": [], "cancel": []})
}

#[cfg(test)]
mod tests;
