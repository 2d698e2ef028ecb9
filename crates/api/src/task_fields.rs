//! The body of a submit and of a change to a task: from JSON text to a checked [`Spec`] or
//! [`Change`].
//!
//! The payload is kept as it is spelled. No value is looked into deeper than its type, so nesting
//! costs nothing here.

use std::collections::{BTreeMap, HashSet};

use duly_client::wire::{DependencyOn, SubmitRequest};
use duly_core::limits::{DEPENDENCIES, LABELS};
use duly_core::submit::{Change, Draft, FieldError, Spec};
use duly_core::workflow::{Condition, Dependency};
use serde_json::value::RawValue;

use crate::back_off_fields;
use crate::error::{ApiError, Code};
use crate::fields::{self, ERRORS, Field, Fields, Object, shorten};

/// How many labels are looked at: more than a task may have, and enough to list what is wrong.
const PAIRS: usize = LABELS + ERRORS + 1;

/// Reads one task from a whole body. `key` is the idempotency key of the header.
pub(crate) fn read(body: &[u8], key: Option<String>) -> Result<Spec, ApiError> {
    read_value(fields::parse(body)?, key)
}

/// Reads one task from text that is known to be JSON.
pub(crate) fn read_value(task: &RawValue, key: Option<String>) -> Result<Spec, ApiError> {
    let (fields, mut draft) = read_draft(task)?;
    if let Some(key) = key {
        if draft.idempotency_key.as_ref().is_some_and(|field| *field != key) {
            return Err(conflicting_keys());
        }
        draft.idempotency_key = Some(key);
    }
    fields.conclude(draft.check())
}

/// Reads the changes to a task from a whole body.
pub(crate) fn read_change(body: &[u8]) -> Result<Change, ApiError> {
    let (fields, draft) = read_draft(fields::parse(body)?)?;
    fields.conclude(draft.check_change())
}

/// A change is read like a task: a field that a task has and that cannot change is not unknown.
fn read_draft(task: &RawValue) -> Result<(Fields, Draft), ApiError> {
    let mut fields = Fields::default();
    match fields.strict_object::<SubmitRequest>(Field::body(task), "a task")? {
        Some(object) => {
            let draft = draft_alone(&mut fields, &object);
            Ok((fields, draft))
        }
        None => fields.end(None),
    }
}

/// The fields that belong to one submit alone, and not to what a schedule submits again and again.
pub(crate) const OF_SUBMIT: [&str; 4] = ["runAt", "idempotencyKey", "dependencies", "workflowId"];

/// Reads the task of a schedule.
pub(crate) fn template(fields: &mut Fields, field: Field<'_, '_>) -> Option<Spec> {
    let object = fields.named_object::<SubmitRequest>(field, "a task")?;
    refuse_of_submit(fields, &object, &OF_SUBMIT);
    let checked = draft_alone(fields, &object).check();
    checked.map_err(|found| fields.absorb(field.at, found)).ok()
}

/// Refuses fields that belong to one submit.
pub(crate) fn refuse_of_submit(
    fields: &mut Fields,
    object: &Object<'_, '_>,
    names: &[&'static str],
) {
    for name in names {
        let field = object.field(name);
        if field.is_given() {
            let detail = "belongs to one submit, and cannot be in a schedule";
            fields.refuse(field.at, Code::UnsupportedField.as_str(), detail);
        }
    }
}

/// A task outside of a workflow.
fn draft_alone(fields: &mut Fields, object: &Object<'_, '_>) -> Draft {
    let draft = draft(fields, object);
    let needed = object.field("dependsOn");
    if needed.is_given() {
        let detail = "goes only with the tasks of a workflow; use dependencies";
        fields.refuse(needed.at, "CONFLICTING_FIELDS", detail);
    }
    draft
}

pub(crate) fn draft(fields: &mut Fields, object: &Object<'_, '_>) -> Draft {
    let notify = object.field("notify");
    if notify.is_given() {
        refuse_unsupported(fields, notify);
    }
    Draft {
        task_type: fields.string(object.field("type")),
        payload: object.field("payload").value.map(|value| value.get().to_owned()),
        queue: fields.string(object.field("queue")),
        priority: fields.number(object.field("priority")),
        delay_seconds: fields.number(object.field("delaySeconds")),
        run_at: fields.string(object.field("runAt")),
        retries: fields.number(object.field("retries")),
        back_off: back_off_fields::read(fields, object.field("backoff"), "backoff"),
        timeout_seconds: fields.number(object.field("timeoutSeconds")),
        jitter_seconds: fields.number(object.field("jitterSeconds")),
        labels: read_labels(fields, object.field("labels")),
        idempotency_key: fields.string(object.field("idempotencyKey")),
        dependencies: read_dependencies(fields, object.field("dependencies")),
        workflow: fields.id(object.field("workflowId")),
        render: fields.flag(object.field("render")).unwrap_or_default(),
    }
}

pub(crate) fn read_labels(fields: &mut Fields, field: Field<'_, '_>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for (key, value) in fields.pairs(field, PAIRS, "an object of strings") {
        let name = shorten(&key);
        let at = field.at.field(&name);
        let Some(text) = fields.string(Field { value: Some(value), at }) else { continue };
        if labels.insert(key, text).is_some() {
            fields.refuse(at, "DUPLICATE_FIELD", "is given twice");
        }
        if labels.len() > LABELS {
            break;
        }
    }
    labels
}

/// Ids, or objects with an id and a condition; each task once.
fn read_dependencies(fields: &mut Fields, list: Field<'_, '_>) -> Vec<Dependency> {
    let items = fields.list(list, DEPENDENCIES);
    let (mut found, mut seen) = (Vec::with_capacity(items.len()), HashSet::new());
    for (index, value) in items.into_iter().enumerate() {
        let item = list.item(index, value);
        let Some(dependency) = read_dependency(fields, item) else { continue };
        if seen.insert(dependency.parent) {
            found.push(dependency);
        } else {
            fields.refuse(item.at, "DUPLICATE_DEPENDENCY", "names a task a second time");
        }
    }
    found
}

fn read_dependency(fields: &mut Fields, item: Field<'_, '_>) -> Option<Dependency> {
    if !item.value.is_some_and(|value| value.get().starts_with('{')) {
        let parent = fields.id(item)?;
        return Some(Dependency { parent, on: Condition::Success });
    }
    let object = fields.named_object::<DependencyOn>(item, "a dependency")?;
    let parent = fields.required(object.field("taskId"));
    let parent = fields.id(parent);
    let on = read_condition(fields, object.field("on"));
    Some(Dependency { parent: parent?, on: on? })
}

/// How a parent must end; to succeed if it does not say.
pub(crate) fn read_condition(fields: &mut Fields, field: Field<'_, '_>) -> Option<Condition> {
    if !field.is_given() {
        return Some(Condition::Success);
    }
    let text = fields.string(field)?;
    let found = Condition::ALL.into_iter().find(|condition| condition.as_str() == text);
    if found.is_none() {
        fields.refuse(field.at, "UNKNOWN_WORD", "must be success, failure or done");
    }
    found
}

fn refuse_unsupported(fields: &mut Fields, field: Field<'_, '_>) {
    let code = Code::UnsupportedField.as_str();
    fields.refuse(field.at, code, "is not supported yet; leave it out");
}

fn conflicting_keys() -> ApiError {
    let detail = "differs from the header Idempotency-Key; give one of them";
    let error = FieldError::of("idempotencyKey", Code::ConflictingFields.as_str(), detail);
    ApiError::with_errors(
        Code::ConflictingFields,
        format!("/idempotencyKey: {detail}"),
        vec![error],
    )
}

#[cfg(test)]
mod tests;
