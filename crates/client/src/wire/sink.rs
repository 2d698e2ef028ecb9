//! Sinks of events: who receives them, and how far behind each is.

use duly_core::id::NodeId;
use duly_core::ports::store::SinkState;
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A sink as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SinkView {
    /// Its name; those of the server itself begin with `duly.`.
    #[cfg_attr(feature = "openapi", schema(example = "duly.stream:default"))]
    pub name: String,
    /// Since when.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// What it has received. Where events are kept for readers: what is no longer kept.
    pub position: String,
    /// Stored rows that it has not received.
    pub lag_rows: u64,
    /// How long the oldest of them has waited; 0 if there is none.
    pub lag_seconds: f64,
    /// For how long events are kept for readers; `null` for a sink that a node serves.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub window_seconds: Option<f64>,
    /// The node that serves it; `null` while none does.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub relay: Option<RelayView>,
    /// Why it receives nothing any more; `null` if it does.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub suspended: Option<SuspensionView>,
    /// What went wrong since the last success; `null` if nothing did.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub trouble: Option<String>,
}

/// The node that serves a sink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RelayView {
    /// Which node.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub node_id: NodeId,
    /// Grows whenever another node takes the sink.
    pub term: u64,
    /// Until when, unless it renews.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub until: Timestamp,
}

/// Why a sink receives nothing any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SuspensionView {
    /// Since when.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// For people.
    pub reason: String,
}

/// All sinks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SinkList {
    /// By name.
    pub items: Vec<SinkView>,
}

impl SinkView {
    /// A sink as the store has it now.
    pub fn new(state: SinkState, now: Timestamp) -> Self {
        let SinkState { sink, created_at, position, lag, relay, suspended, trouble } = state;
        Self {
            name: sink.name.into(),
            created_at,
            position: position.to_string(),
            lag_rows: lag.rows,
            lag_seconds: lag.since.map_or(0.0, |since| now.since(since).as_secs_f64()),
            window_seconds: sink.window.map(|window| window.as_secs_f64()),
            relay: relay.map(|it| RelayView { node_id: it.node, term: it.term, until: it.until }),
            suspended: suspended.map(|it| SuspensionView { at: it.at, reason: it.reason }),
            trouble,
        }
    }
}
