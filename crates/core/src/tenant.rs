//! Tenants: their limits, and what they set for themselves.

use serde::{Deserialize, Serialize};

use crate::back_off::BackOff;
use crate::limits::RETRIES;
use crate::name::TenantName;
use crate::redact;
use crate::settings::{OwnRetention, RetentionDraft, Settings};
use crate::submit::{BackOffDraft, FieldError, whole};
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
    /// How long ended tasks are kept, as far as it differs.
    pub retention: Option<OwnRetention>,
    /// Paths in payloads that are masked wherever a task is shown.
    pub redact: Option<Vec<String>>,
}

/// The fields of a tenant's settings, each of the right JSON type and otherwise unchecked.
#[derive(Clone, Debug, Default)]
pub struct TenantSettingsDraft {
    /// `retries`
    pub retries: Option<f64>,
    /// `backoff`
    pub back_off: Option<BackOffDraft>,
    /// `retention`
    pub retention: Option<RetentionDraft>,
    /// `redact`
    pub redact: Option<Vec<String>>,
}

impl TenantSettingsDraft {
    /// Checks every field and reports all that is wrong at once.
    pub fn check(self) -> Result<TenantSettings, Vec<FieldError>> {
        let mut errors = Vec::new();
        let retries = whole("retries", self.retries, 0..=RETRIES, &mut errors);
        let back_off = self.back_off.map(|it| it.check(&mut errors).or(BackOff::default()));
        let retention = self.retention.map(|it| it.check(&mut errors));
        let retention = retention.filter(|own| *own != OwnRetention::default());
        let redact = self.redact.map(|paths| redact::check_paths(paths, &mut errors));
        let settings = TenantSettings { retries, back_off, retention, redact };
        if errors.is_empty() { Ok(settings) } else { Err(errors) }
    }
}

impl TenantSettings {
    /// What holds for the tenant's tasks, over what holds in the installation.
    pub fn over(&self, installation: Settings) -> Settings {
        Settings {
            retries: self.retries.unwrap_or(installation.retries),
            back_off: self.back_off.unwrap_or(installation.back_off),
            retention: self.retention.unwrap_or_default().over(installation.retention),
            redact: self.redact.clone().unwrap_or(installation.redact),
            ..installation
        }
    }
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
