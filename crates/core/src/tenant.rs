//! Tenants: their limits, and what they set for themselves.

use serde::{Deserialize, Serialize};

use crate::back_off::BackOff;
use crate::name::TenantName;
use crate::settings::Retention;
use crate::time::Timestamp;

/// How much a tenant may use; what is absent has only the limits of the installation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quotas {
    /// Tasks that wait or are blocked. Checked against a count that is a second old at the most.
    pub waiting_tasks: Option<u32>,
    /// Tasks submitted in a second, on each node.
    pub submits_per_second: Option<u32>,
    /// Bytes of one payload.
    pub payload_bytes: Option<u32>,
    /// Schedules.
    pub schedules: Option<u32>,
    /// Workflows that have not ended.
    pub workflows: Option<u32>,
}

/// Settings of the installation that a tenant sets otherwise; what is absent is as in the installation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantSettings {
    /// Retries of a task that does not say.
    pub retries: Option<u32>,
    /// Back-off of a task, as far as it does not say.
    pub back_off: Option<BackOff>,
    /// How long ended tasks are kept.
    pub retention: Option<Retention>,
    /// Paths in payloads that are masked wherever a task is shown.
    pub redact: Option<Vec<String>>,
}

/// A tenant, as the installation's admins have made it. A tenant needs no record: one without has no
/// quotas and is not suspended.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantRecord {
    /// Its name.
    pub name: TenantName,
    /// Counts the changes, from 1.
    pub version: u64,
    /// Since when it may neither submit nor get tasks run.
    pub suspended_at: Option<Timestamp>,
    /// For people, such as why it is suspended.
    pub note: Option<String>,
    /// Its limits.
    pub quotas: Quotas,
    /// What it sets for itself.
    pub settings: TenantSettings,
    /// When the record was created.
    pub created_at: Timestamp,
}
