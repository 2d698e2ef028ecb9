//! Workers as people see them.

use duly_core::id::{NodeId, SessionId};
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// An open session of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "Worker", as = Worker, example = worker_example))]
pub struct WorkerView {
    /// The id of its session.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub worker_id: SessionId,
    /// What it calls itself; need not be unique.
    pub name: String,
    /// Where it runs.
    pub home: WorkerHome,
    /// The node it runs in; `null` for a remote worker.
    #[cfg_attr(
        feature = "openapi",
        schema(required = true, value_type = Option<String>, format = "uuid")
    )]
    pub node_id: Option<NodeId>,
    /// Whose tasks it runs; `null` for everybody's.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub tenant: Option<String>,
    /// The types it has handlers for.
    pub types: Vec<String>,
    /// The queues it serves; all of them when empty.
    pub queues: Vec<String>,
    /// Whether it takes new tasks.
    pub state: WorkerLife,
    /// When its last sign of life came, or its session was opened.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub beat_at: Timestamp,
    /// How long ago that was, by the store's clock.
    pub beat_age_seconds: f64,
    /// How many leases it holds.
    pub leases: u32,
}

/// Where a worker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum WorkerHome {
    /// In the process of a node.
    Node,
    /// In a process of its own, which speaks the worker protocol.
    Remote,
}

/// Whether a worker takes new tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum WorkerLife {
    /// It does.
    Active,
    /// It finishes what it holds and takes nothing more.
    Draining,
}

/// The workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerList {
    /// The workers, by name.
    pub items: Vec<WorkerView>,
    /// Always `null`: all of them are listed.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub next_cursor: Option<String>,
}

/// Whether a worker is to drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DrainRequest {
    /// `false` lets it take new tasks again; `true` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<bool>,
}

#[cfg(feature = "openapi")]
fn worker_example() -> serde_json::Value {
    serde_json::json!({
        "workerId": "01920000-0000-7000-8000-00000000000a", "name": "mailer-1", "home": "remote",
        "nodeId": null, "tenant": "default", "types": ["email"], "queues": ["default"],
        "state": "active", "beatAt": "2030-01-31T08:00:00.000Z", "beatAgeSeconds": 1.2, "leases": 3
    })
}
