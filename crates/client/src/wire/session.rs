//! A worker's session: how it begins, how it stays alive, and what the worker learns meanwhile.

use duly_core::id::{SessionId, TaskId};
use duly_core::ports::work_source::{TakenBack, Why};
use serde::{Deserialize, Serialize};

/// A worker process that wants leases. Only `types` is required.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = register_example))]
pub struct RegisterRequest {
    /// What the process calls itself, for people: host and process id, say. Need not be unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 200))]
    pub name: Option<String>,
    /// The types it has handlers for.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1000))]
    pub types: Vec<String>,
    /// The queues it serves; all of them if absent or empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub queues: Vec<String>,
    /// How many tasks it runs at once, for people; the `max` of each claim is what counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub capacity: Option<u32>,
}

/// A session that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = registration_example))]
pub struct Registration {
    /// Names the session in every later call.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub session_id: SessionId,
    /// How long the worker may be silent before it is taken for dead.
    pub ttl_seconds: f64,
    /// How often it should beat.
    pub heartbeat_seconds: f64,
}

/// A sign of life for everything the session holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = heartbeat_example))]
pub struct HeartbeatRequest {
    /// The `seq` of every claim whose answer arrived and of which a lease is still held. A batch
    /// that is never named here is released.
    #[serde(default)]
    pub received: Vec<u64>,
    /// Tasks that are held and have not started: should the worker die, they count no loss. What
    /// the beat before said is forgotten.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub unstarted: Vec<TaskId>,
    /// How long the answer may wait for something to tell; it is given at once if absent. The beat
    /// counts from when it arrives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 60))]
    pub wait_seconds: Option<f64>,
}

/// What a worker learns when it beats. A hint: what it misses shows when it finishes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = heartbeat_answer_example))]
pub struct HeartbeatAnswer {
    /// Leases that were taken back: another worker gets the task.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub lost: Vec<LeaseRef>,
    /// Leases whose task was cancelled.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub cancel: Vec<LeaseRef>,
    /// Whether the worker should finish what it runs and claim nothing more.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub drain: bool,
}

impl HeartbeatAnswer {
    /// What a worker is told, from the leases that are gone.
    pub fn new(taken_back: &[TakenBack], drain: bool) -> Self {
        let (lost, cancel) = LeaseRef::sort(taken_back);
        Self { lost, cancel, drain }
    }
}

/// Names one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaseRef {
    /// Which task.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub task_id: TaskId,
    /// Under which grant.
    pub epoch: u32,
}

impl LeaseRef {
    /// The leases that were lost, and those whose task was cancelled.
    pub fn sort(taken_back: &[TakenBack]) -> (Vec<Self>, Vec<Self>) {
        let gone = |why: Why| {
            let of_kind = taken_back.iter().filter(move |lease| lease.why == why);
            of_kind.map(|lease| Self { task_id: lease.task, epoch: lease.epoch }).collect()
        };
        (gone(Why::Lost), gone(Why::Cancelled))
    }

    /// The leases that are gone, from those that were lost and those whose task was cancelled.
    pub fn taken_back(lost: &[Self], cancel: &[Self]) -> Vec<TakenBack> {
        let gone =
            |why| move |lease: &Self| TakenBack { task: lease.task_id, epoch: lease.epoch, why };
        let lost = lost.iter().map(gone(Why::Lost));
        lost.chain(cancel.iter().map(gone(Why::Cancelled))).collect()
    }
}

#[cfg(feature = "openapi")]
fn register_example() -> serde_json::Value {
    serde_json::json!({
        "name": "mailer-1", "types": ["email"], "queues": ["default"], "capacity": 32
    })
}

#[cfg(feature = "openapi")]
fn registration_example() -> serde_json::Value {
    serde_json::json!({
        "sessionId": "01920000-0000-7000-8000-00000000000a", "ttlSeconds": 10.0,
        "heartbeatSeconds": 3.333
    })
}

#[cfg(feature = "openapi")]
fn heartbeat_example() -> serde_json::Value {
    serde_json::json!({
        "received": [7, 8], "unstarted": ["01920000-0000-7000-8000-000000000000"]
    })
}

#[cfg(feature = "openapi")]
fn heartbeat_answer_example() -> serde_json::Value {
    serde_json::json!({
        "lost": [], "cancel": [{"taskId": "01920000-0000-7000-8000-000000000000", "epoch": 1}],
        "drain": false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_lease_is_gone_survives_the_way() {
        let text = r#"{"lost":[{"taskId":"01920000-0000-7000-8000-000000000000","epoch":3}],
            "cancel":[{"taskId":"01920000-0000-7000-8000-000000000001","epoch":1}],"drain":true}"#;
        let answer: HeartbeatAnswer = serde_json::from_str(text).unwrap();
        let gone = LeaseRef::taken_back(&answer.lost, &answer.cancel);
        assert_eq!([gone[0].why, gone[1].why], [Why::Lost, Why::Cancelled]);
        assert_eq!(HeartbeatAnswer::new(&gone, true), answer);
    }

    #[test]
    fn an_empty_beat_is_a_beat() {
        let beat: HeartbeatRequest = serde_json::from_str("{}").unwrap();
        assert_eq!(beat, HeartbeatRequest::default());
    }
}
