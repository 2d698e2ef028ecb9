//! A schedule as a store keeps it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Rule, ScheduleDraft, Template};
use crate::id::{ScheduleId, TaskId, WorkflowId};
use crate::name::{ScheduleName, TenantName};
use crate::time::Timestamp;

/// Whether a schedule fires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ScheduleStatus {
    /// It does.
    #[default]
    Active,
    /// It does not until it is resumed. What would have been a slot meanwhile is none.
    Paused,
}

impl ScheduleStatus {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::Paused => "PAUSED",
        }
    }
}

impl fmt::Display for ScheduleStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a slot has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotRun {
    /// A task.
    Task(TaskId),
    /// A workflow.
    Workflow(WorkflowId),
}

/// What a schedule is and does, as text: a store keeps it and need not understand it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// When it fires, and its policies.
    pub rule: Arc<str>,
    /// What it runs.
    pub template: Arc<str>,
}

impl Definition {
    /// The texts of a rule and a template.
    pub fn new(rule: &Rule, template: &Template) -> Self {
        let rule = serde_json::to_string(&ScheduleDraft::from(rule)).expect("a rule is JSON");
        Self { rule: rule.into(), template: template.encode().into() }
    }

    /// The rule; nothing if its text is damaged.
    pub fn rule(&self) -> Option<Rule> {
        serde_json::from_str::<ScheduleDraft>(&self.rule).ok()?.read().ok()
    }

    /// The template; nothing if its text is damaged.
    pub fn template(&self) -> Option<Template> {
        Template::decode(&self.template)
    }
}

/// A stored schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Its id. Under the same name, another schedule has another.
    pub id: ScheduleId,
    /// Whose.
    pub tenant: TenantName,
    /// Its name among those of the tenant.
    pub name: ScheduleName,
    /// When it fires and what it runs.
    pub definition: Definition,
    /// Searchable marks.
    pub labels: BTreeMap<String, String>,
    /// Whether it fires.
    pub status: ScheduleStatus,
    /// For people.
    pub note: Option<String>,
    /// Whether a configuration file defines it: requests cannot change it.
    pub managed: bool,
    /// Counts edits, pauses and resumes.
    pub generation: u32,
    /// Rises with every change of any schedule, so that changes are found by it.
    pub version: u64,
    /// Slots up to this instant are decided.
    pub position: Timestamp,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// The label of a task or workflow that names the schedule which started it.
pub const SCHEDULE_LABEL: &str = "duly.schedule";
/// The label of a task or workflow that names its slot.
pub const SLOT_LABEL: &str = "duly.slot";
/// The code of the tasks that are cancelled since a later slot takes their place.
pub const SLOT_REPLACED: &str = "SLOT_REPLACED";
/// The code of the tasks that are cancelled since their schedule was changed before they were granted.
pub const SCHEDULE_CHANGED: &str = "SCHEDULE_CHANGED";
