//! Schedules: what runs at which times, and what became of each.

use std::collections::BTreeMap;

use duly_core::id::{ScheduleId, TaskId, WorkflowId};
use duly_core::ports::store::{RunStatus, SlotOutcome, SlotRecord};
use duly_core::schedule::{
    Misfire, Overlap, Rule, SCHEDULE_LABEL, SLOT_LABEL, Schedule, ScheduleDraft, ScheduleStatus,
    SkipReason, SlotRun, Template,
};
use duly_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{SubmitRequest, WorkflowRequest};

/// A schedule to create, to replace or to preview: exactly one of `cron`, `every` and `at`, and exactly
/// one of `task` and `workflow`. `null` means the same as leaving a field out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = schedule_example))]
pub struct ScheduleRequest {
    /// Its name, if it is given here, too: the one in the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"))]
    pub name: Option<String>,
    /// Five fields, six with seconds in front, or a nickname such as `@daily`; in `timeZone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 1000, example = "0 2 * * MON-FRI"))]
    pub cron: Option<String>,
    /// An interval of whole seconds, such as `30s`, `1h30m` or `PT30S`: from `startAt` on, or else the
    /// multiples of it since 1970 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// One instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub at: Option<Timestamp>,
    /// A zone of the IANA database; `UTC` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 64, example = "Europe/Rome"))]
    pub time_zone: Option<String>,
    /// The task that a slot submits, without `runAt`, `idempotencyKey`, `dependencies` and `workflowId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<SubmitRequest>,
    /// The workflow that a slot submits, without what belongs to one submit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowRequest>,
    /// What happens to a slot while the run of an earlier one has not ended: `skip` (if absent),
    /// `bufferOne` (tasks only), `allow` or `cancelOther`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, pattern = "^(skip|bufferOne|allow|cancelOther)$"))]
    pub overlap: Option<Overlap>,
    /// What happens to slots that come more than a minute late: `latest` (if absent) runs one of them,
    /// `skip` none, `all` all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, pattern = "^(latest|skip|all)$"))]
    pub misfire: Option<Misfire>,
    /// How late a missed slot may still run; 3600 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 604_800))]
    pub catch_up_seconds: Option<f64>,
    /// Spreads the starts over this many seconds; 0 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 3600))]
    pub jitter_seconds: Option<f64>,
    /// No slot lies before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub start_at: Option<Timestamp>,
    /// No slot lies after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub end_at: Option<Timestamp>,
    /// `ACTIVE` (if absent) or `PAUSED`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, pattern = "^(ACTIVE|PAUSED)$"))]
    pub status: Option<ScheduleStatus>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 500))]
    pub note: Option<String>,
    /// Searchable marks of the schedule, at most 32; keys and values up to 200 characters. Those of what it
    /// runs are in `task` or `workflow`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A schedule.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "Schedule", as = Schedule))]
pub struct ScheduleView {
    /// Names the schedule for ever: a later one of the same name has another.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub schedule_id: ScheduleId,
    /// Its name among those of the tenant.
    pub name: String,
    /// When it fires, in plain English.
    #[cfg_attr(feature = "openapi", schema(example = "At 02:00, Monday to Friday (Europe/Rome)"))]
    pub description: String,
    /// The cron expression, if it has one.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub cron: Option<String>,
    /// The interval, if it has one.
    #[cfg_attr(feature = "openapi", schema(required = true, example = "90s"))]
    pub every: Option<String>,
    /// The one instant at which it fires, if it has one.
    #[cfg_attr(feature = "openapi", schema(required = true, value_type = Option<String>, format = DateTime))]
    pub at: Option<Timestamp>,
    /// The zone of the cron expression and of texts for people.
    pub time_zone: String,
    /// The task that a slot submits.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub task: Option<SubmitRequest>,
    /// The workflow that a slot submits.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub workflow: Option<WorkflowRequest>,
    /// What happens to a slot while the run of an earlier one has not ended.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "skip"))]
    pub overlap: Overlap,
    /// What happens to slots that come late.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "latest"))]
    pub misfire: Misfire,
    /// How late a missed slot may still run.
    pub catch_up_seconds: f64,
    /// The starts are spread over this many seconds.
    pub jitter_seconds: f64,
    /// No slot lies before it.
    #[cfg_attr(feature = "openapi", schema(required = true, value_type = Option<String>, format = DateTime))]
    pub start_at: Option<Timestamp>,
    /// No slot lies after it.
    #[cfg_attr(feature = "openapi", schema(required = true, value_type = Option<String>, format = DateTime))]
    pub end_at: Option<Timestamp>,
    /// `ACTIVE` or `PAUSED`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "ACTIVE"))]
    pub status: ScheduleStatus,
    /// For people.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub note: Option<String>,
    /// Searchable marks.
    pub labels: BTreeMap<String, String>,
    /// Whether a configuration file defines it; then requests cannot change it.
    pub managed: bool,
    /// Counts edits, pauses and resumes.
    pub generation: u32,
    /// Rises with every change; the header `ETag` has it, too.
    pub version: u64,
    /// The next slot; `null` if there is none or it is paused.
    #[cfg_attr(feature = "openapi", schema(required = true, value_type = Option<String>, format = DateTime))]
    pub next_at: Option<Timestamp>,
    /// When it was created.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When it was last changed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub updated_at: Timestamp,
}

/// One page of schedules, by name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SchedulePage {
    /// The schedules.
    pub items: Vec<ScheduleView>,
    /// Give it as `cursor` to get the next page; `null` on the last one.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub next_cursor: Option<String>,
}

/// What a definition means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SchedulePreview {
    /// When it fires, in plain English.
    #[cfg_attr(feature = "openapi", schema(example = "At 02:30 (Europe/Rome)"))]
    pub description: String,
    /// Its zone.
    #[cfg_attr(feature = "openapi", schema(example = "Europe/Rome"))]
    pub time_zone: String,
    /// Its next five slots, or as many as there are.
    pub next: Vec<SlotTime>,
    /// The first of the next 366 slots, up to a year ahead, that a change of the clocks moves or repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_note: Option<String>,
}

/// The next slots of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NextSlots {
    /// The zone of the local times.
    #[cfg_attr(feature = "openapi", schema(example = "Europe/Rome"))]
    pub time_zone: String,
    /// `ACTIVE` or `PAUSED`: these slots fire only while it is active.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "ACTIVE"))]
    pub status: ScheduleStatus,
    /// The slots, earliest first.
    pub items: Vec<SlotTime>,
}

/// When a slot is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SlotTime {
    /// In UTC.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub slot: Timestamp,
    /// In the zone of the schedule.
    #[cfg_attr(feature = "openapi", schema(example = "Mon 2030-01-07 02:00:00 CET"))]
    pub local: String,
}

/// The decided slots of a schedule, newest slot first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SlotPage {
    /// The slots; the last 100 are kept.
    pub items: Vec<SlotView>,
}

/// A slot that was decided: it has started a task or a workflow, or was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "Slot", as = Slot))]
pub struct SlotView {
    /// The slot.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub slot: Timestamp,
    /// The task that it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = "uuid"))]
    pub task_id: Option<TaskId>,
    /// The workflow that it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = "uuid"))]
    pub workflow_id: Option<WorkflowId>,
    /// Where the task or workflow is in its life; `null` if the slot was skipped, or what it started was
    /// deleted.
    #[cfg_attr(feature = "openapi", schema(required = true, example = "SUCCESS"))]
    pub status: Option<String>,
    /// Why nothing was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, example = "OVERLAP"))]
    pub skipped: Option<SkipReason>,
}

/// Slots of the past to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = backfill_example))]
pub struct BackfillRequest {
    /// The first instant.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub from: Timestamp,
    /// The last instant; one in the future means now.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub to: Timestamp,
    /// Run nothing, and tell which slots these are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// A backfill that was started, or what it would run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackfillAnswer {
    /// With `dryRun`: the slots, oldest first.
    pub slots: Vec<BackfillSlotView>,
    /// Whether there are more slots than are named here, or than one backfill runs.
    pub more: bool,
    /// The task that runs the slots, one after the other; `null` with `dryRun`, or if there is no slot.
    #[cfg_attr(feature = "openapi", schema(required = true, value_type = Option<String>, format = "uuid"))]
    pub task_id: Option<TaskId>,
}

/// A slot of a backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "BackfillSlot", as = BackfillSlot))]
pub struct BackfillSlotView {
    /// The slot.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub slot: Timestamp,
    /// Whether it has run before; then it does not run again.
    pub ran_before: bool,
}

/// The schedule and the slot that started a task or a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleSlot {
    /// The name of the schedule.
    #[cfg_attr(feature = "openapi", schema(example = "nightly"))]
    pub name: String,
    /// The slot.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub slot: Timestamp,
}

impl ScheduleSlot {
    /// What the labels of a task or a workflow say.
    pub fn of(labels: &BTreeMap<String, String>) -> Option<Self> {
        let slot = Timestamp::parse(labels.get(SLOT_LABEL)?).ok()?;
        Some(Self { name: labels.get(SCHEDULE_LABEL)?.clone(), slot })
    }
}

impl ScheduleView {
    /// A schedule with its definition as it was read from the store's text.
    pub fn new(
        schedule: Schedule,
        rule: &Rule,
        template: &Template,
        next_at: Option<Timestamp>,
    ) -> Self {
        let (task, workflow) = match template {
            Template::Task(spec) => (Some(SubmitRequest::from(&**spec)), None),
            Template::Workflow(spec) => (None, Some(WorkflowRequest::from(&**spec))),
        };
        let timing = ScheduleDraft::from(rule);
        Self {
            schedule_id: schedule.id,
            name: schedule.name.into(),
            description: rule.describe(),
            cron: timing.cron,
            every: timing.every,
            at: timing.at.and_then(|at| Timestamp::parse(&at).ok()),
            time_zone: rule.zone.name().to_owned(),
            task,
            workflow,
            overlap: rule.overlap,
            misfire: rule.misfire,
            catch_up_seconds: rule.catch_up.as_secs_f64(),
            jitter_seconds: rule.jitter.as_secs_f64(),
            start_at: rule.start_at,
            end_at: rule.end_at,
            status: schedule.status,
            note: schedule.note,
            labels: schedule.labels,
            managed: schedule.managed,
            generation: schedule.generation,
            version: schedule.version,
            next_at,
            created_at: schedule.created_at,
            updated_at: schedule.updated_at,
        }
    }
}

impl From<SlotRecord> for SlotView {
    fn from(SlotRecord { slot, outcome, status }: SlotRecord) -> Self {
        let status = status.map(|status| match status {
            RunStatus::Task(status) => status.to_string(),
            RunStatus::Workflow(status) => status.to_string(),
        });
        let plain = Self { slot, task_id: None, workflow_id: None, status, skipped: None };
        match outcome {
            SlotOutcome::Ran(SlotRun::Task(id)) => Self { task_id: Some(id), ..plain },
            SlotOutcome::Ran(SlotRun::Workflow(id)) => Self { workflow_id: Some(id), ..plain },
            SlotOutcome::Skipped(reason) => Self { skipped: Some(reason), ..plain },
        }
    }
}

#[cfg(feature = "openapi")]
fn backfill_example() -> serde_json::Value {
    serde_json::json!({
        "from": "2026-01-01T00:00:00Z", "to": "2026-01-08T00:00:00Z", "dryRun": true
    })
}

#[cfg(feature = "openapi")]
fn schedule_example() -> serde_json::Value {
    serde_json::json!({
        "cron": "0 2 * * MON-FRI", "timeZone": "Europe/Rome",
        "task": {"type": "echo", "payload": {"report": "daily"}}
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_name_schedule_and_slot() {
        let labels = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let slot = "2030-01-07T01:00:00.000Z";
        let both = labels(&[(SCHEDULE_LABEL, "nightly"), (SLOT_LABEL, slot)]);
        let found = ScheduleSlot::of(&both).unwrap();
        assert_eq!((found.name.as_str(), found.slot.to_string().as_str()), ("nightly", slot));
        for missing in [&[][..], &[(SCHEDULE_LABEL, "nightly")], &[(SLOT_LABEL, slot)]] {
            assert_eq!(ScheduleSlot::of(&labels(missing)), None);
        }
        let bad = labels(&[(SCHEDULE_LABEL, "nightly"), (SLOT_LABEL, "soon")]);
        assert_eq!(ScheduleSlot::of(&bad), None);
    }

    #[test]
    fn what_is_not_said_is_not_sent() {
        let request = ScheduleRequest {
            every: Some("30s".to_owned()),
            task: Some(SubmitRequest::new("echo")),
            overlap: Some(Overlap::BufferOne),
            ..ScheduleRequest::default()
        };
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(text, r#"{"every":"30s","task":{"type":"echo"},"overlap":"bufferOne"}"#);
    }
}
