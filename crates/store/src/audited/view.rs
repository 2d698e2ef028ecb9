//! How objects are shown in the audit log.

use std::collections::BTreeMap;
use std::sync::Arc;

use duly_core::access::TenantGrant;
use duly_core::id::{SessionId, WorkflowId};
use duly_core::key::ApiKey;
use duly_core::name::{QueueName, ScheduleName, TenantName, TypeName};
use duly_core::ports::store::{Pause, SlotOutcome, VersionedSettings};
use duly_core::schedule::{Schedule, SlotRun, Template};
use duly_core::state::Status;
use duly_core::task::Task;
use duly_core::tenant::TenantRecord;
use duly_core::time::Timestamp;
use duly_core::workflow::WorkflowStatus;
use serde_json::{Map, Value, json};

/// An object as the audit log shows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct View {
    /// Whose it is; of the installation if absent.
    pub(crate) tenant: Option<TenantName>,
    /// Its id or name.
    pub(crate) target: String,
    fields: Map<String, Value>,
    /// What is compared and never shown: payloads. By name.
    hidden: Vec<(&'static str, Arc<str>)>,
}

impl View {
    fn new(tenant: Option<&TenantName>, target: impl ToString, fields: Value) -> Self {
        let Value::Object(mut fields) = fields else { unreachable!("views are objects") };
        fields.retain(|_, value| !value.is_null());
        let (tenant, target) = (tenant.cloned(), target.to_string());
        Self { tenant, target, fields, hidden: Vec::new() }
    }

    /// One whose row cannot be read. It can still be replaced or deleted.
    pub(crate) fn damaged(tenant: Option<&TenantName>, target: impl ToString) -> Self {
        Self::new(tenant, target, json!({"damaged": true}))
    }

    pub(crate) fn settings(settings: &VersionedSettings) -> Self {
        let mut fields = serde_json::to_value(&settings.settings).unwrap_or_else(|_| json!({}));
        if let Value::Object(fields) = &mut fields {
            fields.insert("version".to_owned(), json!(settings.version));
            fields.insert("comment".to_owned(), json!(settings.comment));
        }
        Self::new(None, "settings", fields)
    }

    pub(crate) fn queue(tenant: &TenantName, queue: &QueueName, pause: Option<&Pause>) -> Self {
        let note = pause.map(|pause| pause.note.as_str()).filter(|note| !note.is_empty());
        Self::new(Some(tenant), queue, json!({"paused": pause.is_some(), "note": note}))
    }

    pub(crate) fn schedule(schedule: &Schedule) -> Self {
        let rule: Value = serde_json::from_str(&schedule.definition.rule).unwrap_or_default();
        let mut fields = json!({
            "status": schedule.status.as_str(),
            "version": schedule.version,
            "note": schedule.note,
            "labels": labels(&schedule.labels),
            "rule": rule,
        });
        match schedule.definition.template() {
            Some(Template::Task(spec)) => {
                fields["type"] = json!(spec.task_type.as_str());
                fields["queue"] = json!(spec.queue.as_str());
            }
            Some(Template::Workflow(spec)) => {
                fields["workflow"] = json!(spec.name);
                fields["tasks"] = json!(spec.members.tasks().len());
            }
            None => fields["damaged"] = json!(true),
        }
        let hidden = vec![("template", Arc::clone(&schedule.definition.template))];
        Self { hidden, ..Self::new(Some(&schedule.tenant), &schedule.name, fields) }
    }

    pub(crate) fn slot(
        tenant: &TenantName,
        name: &ScheduleName,
        slot: Timestamp,
        outcome: SlotOutcome,
    ) -> Self {
        let mut fields = json!({"slot": slot.to_string()});
        match outcome {
            SlotOutcome::Ran(SlotRun::Task(task)) => fields["task"] = json!(task.to_string()),
            SlotOutcome::Ran(SlotRun::Workflow(id)) => fields["workflow"] = json!(id.to_string()),
            SlotOutcome::Skipped(reason) => fields["skipped"] = json!(reason.as_str()),
        }
        Self::new(Some(tenant), name, fields)
    }

    pub(crate) fn task(task: &Task) -> Self {
        let ended = task.status == Status::Cancelled;
        let reason = task.error.as_ref().filter(|_| ended).map(|error| error.message.as_str());
        let fields = json!({
            "type": task.lane.task_type.as_str(),
            "queue": task.lane.queue.as_str(),
            "status": task.status.as_str(),
            "run": task.run,
            "priority": task.priority.level(),
            "runAt": task.run_at.to_string(),
            "retries": task.retries,
            "timeoutSeconds": task.timeout.map(|timeout| timeout.as_secs_f64()),
            "labels": labels(&task.labels),
            "reason": reason,
        });
        let hidden = vec![("payload", Arc::clone(&task.payload))];
        Self { hidden, ..Self::new(Some(&task.lane.tenant), task.id, fields) }
    }

    pub(crate) fn workflow(
        tenant: &TenantName,
        id: WorkflowId,
        status: WorkflowStatus,
        cancelled: Option<&str>,
    ) -> Self {
        let fields = json!({"status": status.as_str(), "cancelled": cancelled});
        Self::new(Some(tenant), id, fields)
    }

    pub(crate) fn session(
        tenant: Option<&TenantName>,
        id: SessionId,
        name: &str,
        draining: bool,
    ) -> Self {
        Self::new(tenant, id, json!({"name": name, "draining": draining}))
    }

    /// Not when it was used last: that is no change.
    pub(crate) fn key(key: &ApiKey) -> Self {
        let tenant = match &key.tenant {
            TenantGrant::One(tenant) => Some(tenant),
            TenantGrant::Installation => None,
        };
        let fields = json!({
            "name": key.name,
            "tenant": key.tenant.as_str(),
            "roles": key.roles.iter().map(|role| role.as_str()).collect::<Vec<_>>(),
            "queues": names(key.queues.iter().map(QueueName::as_str)),
            "types": names(key.types.iter().map(TypeName::as_str)),
            "expiresAt": key.expires_at.map(|at| at.to_string()),
            "revokedAt": key.revoked_at.map(|at| at.to_string()),
        });
        Self::new(tenant, key.id, fields)
    }

    /// It is the installation's: a tenant has no say in its own record.
    pub(crate) fn tenant(record: &TenantRecord) -> Self {
        let fields = json!({
            "version": record.version,
            "suspended": record.suspended_at.is_some(),
            "note": record.note,
            "quotas": present(serde_json::to_value(record.quotas)),
            "settings": present(serde_json::to_value(&record.settings)),
        });
        Self::new(None, &record.name, fields)
    }

    pub(super) fn is_of_type(&self, name: &TypeName) -> bool {
        self.fields.get("type").and_then(Value::as_str) == Some(name.as_str())
    }
}

fn labels(labels: &BTreeMap<String, String>) -> Option<&BTreeMap<String, String>> {
    Some(labels).filter(|labels| !labels.is_empty())
}

/// Names that narrow something; if there are none, it is not narrowed.
fn names<'a>(names: impl Iterator<Item = &'a str>) -> Option<Vec<&'a str>> {
    Some(names.collect::<Vec<_>>()).filter(|names| !names.is_empty())
}

/// What is set of an object's fields.
fn present(fields: serde_json::Result<Value>) -> Value {
    let mut fields = fields.unwrap_or_default();
    if let Value::Object(fields) = &mut fields {
        fields.retain(|_, value| !value.is_null());
    }
    fields
}

type Fields = Map<String, Value>;

/// What a change of a tenant's record is called if it only suspends the tenant or lets it go on; the
/// note may say why.
pub(super) fn switched(before: Option<&View>, after: Option<&View>) -> Option<&'static str> {
    let (before, after) = (&before?.fields, &after?.fields);
    let is_same = |name| before.get(name) == after.get(name);
    if is_same("suspended") || !is_same("quotas") || !is_same("settings") {
        return None;
    }
    let is_suspended = after.get("suspended").and_then(Value::as_bool)?;
    Some(if is_suspended { "tenant.suspend" } else { "tenant.resume" })
}

/// What is to be told of an object before and after a change: all of it if it is new or gone, else the
/// fields that differ.
pub(super) fn difference(
    before: Option<View>,
    after: Option<View>,
) -> (Option<Fields>, Option<Fields>) {
    let (Some(before), Some(after)) = (&before, &after) else {
        return (before.map(|it| it.fields), after.map(|it| it.fields));
    };
    let mut changed = only_new(&after.fields, &before.fields);
    for (name, text) in &after.hidden {
        if before.hidden.iter().any(|(known, was)| known == name && was != text) {
            changed.insert((*name).to_owned(), json!("changed"));
        }
    }
    (Some(only_new(&before.fields, &after.fields)), Some(changed))
}

/// The fields that are not the same in the other.
fn only_new(fields: &Fields, other: &Fields) -> Fields {
    let differ = fields.iter().filter(|(name, value)| other.get(*name) != Some(value));
    differ.map(|(name, value)| (name.clone(), value.clone())).collect()
}
