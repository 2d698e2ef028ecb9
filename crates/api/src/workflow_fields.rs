//! The body of a workflow, and the tasks that an outcome adds: from JSON text to checked members.

use std::collections::{BTreeMap, HashSet};

use duly_client::wire::{NeededOn, Problem, SubmitRequest, ThenView, WorkflowRequest};
use duly_core::limits::{DEPENDENCIES, KEY_CHARS, THEN_TASKS, WORKFLOW_NAME_CHARS, WORKFLOW_TASKS};
use duly_core::submit::{check_key, check_labels};
use duly_core::workflow::plan::{Flaw, Needed};
use duly_core::workflow::request::{Member, Members, WorkflowSpec};
use serde_json::value::RawValue;

use crate::error::{ApiError, Code};
use crate::fields::{self, Field, Fields, Object, Pointer, shorten};
use crate::order_fields::read_remark;
use crate::task_fields::{self, OF_SUBMIT, draft, read_condition, read_labels};

/// What tasks may not say beside others, and why.
#[derive(Clone, Copy)]
enum Within {
    Workflow,
    Outcome,
    Schedule,
}

/// Checks the body of a workflow as `POST /workflows` does, as far as no server is needed. The error is
/// what it would answer.
pub fn check_workflow(body: &[u8]) -> Result<WorkflowSpec, Box<Problem>> {
    read(body, None).map_err(|refused| Box::new(refused.problem(None)))
}

/// Reads a [`WorkflowRequest`]. `key` is the idempotency key of the header.
pub(crate) fn read(body: &[u8], key: Option<String>) -> Result<WorkflowSpec, ApiError> {
    let (mut fields, object) = fields::open::<WorkflowRequest>(body)?;
    let idempotency_key = read_key(&mut fields, object.field("idempotencyKey"), key);
    let spec = read_spec(&mut fields, &object, Pointer::Root, Within::Workflow);
    fields.end(spec.map(|spec| WorkflowSpec { idempotency_key, ..spec }))
}

/// Reads the workflow of a schedule.
pub(crate) fn template(fields: &mut Fields, field: Field<'_, '_>) -> Option<WorkflowSpec> {
    let object = fields.named_object::<WorkflowRequest>(field, "a workflow")?;
    task_fields::refuse_of_submit(fields, &object, &["idempotencyKey"]);
    read_spec(fields, &object, field.at, Within::Schedule)
}

/// All but the idempotency key.
fn read_spec(
    fields: &mut Fields,
    object: &Object<'_, '_>,
    at: Pointer<'_>,
    within: Within,
) -> Option<WorkflowSpec> {
    let before = fields.count();
    let name = read_remark(fields, object.field("name"), WORKFLOW_NAME_CHARS);
    let labels = read_labels(fields, object.field("labels"));
    let fail_fast = fields.flag(object.field("failFast")).unwrap_or_default();
    fields.absorb(at, check_labels(&labels).err().into_iter().collect());
    let tasks = fields.required(object.field("tasks"));
    let given = tasks.is_given();
    let members = read_members(fields, tasks, within);
    if given && members.is_empty() && fields.count() == before {
        fields.refuse(tasks.at, "REQUIRED", "must not be empty");
    }
    if fields.count() != before {
        return None;
    }
    let keys: Vec<_> = members.iter().map(|member| member.key.clone()).collect();
    let members = Members::of_workflow(members);
    let members = members.map_err(|flaws| refuse(fields, tasks.at, &keys, flaws)).ok()?;
    Some(WorkflowSpec { name, labels, fail_fast, idempotency_key: None, members })
}

fn read_key(fields: &mut Fields, field: Field<'_, '_>, header: Option<String>) -> Option<String> {
    let own = fields.string(field);
    if let (Some(own), Some(header)) = (&own, &header)
        && own != header
    {
        let detail = "differs from the header Idempotency-Key; give one of them";
        fields.refuse(field.at, Code::ConflictingFields.as_str(), detail);
    }
    let key = header.or(own);
    let flaw = key.as_deref().and_then(|key| check_key(key).err());
    fields.absorb(Pointer::Root, flaw.into_iter().collect());
    key
}

/// Reads a [`ThenView`].
pub(crate) fn then(fields: &mut Fields, field: Field<'_, '_>) -> Option<Members> {
    let object = fields.named_object::<ThenView>(field, "then")?;
    let tasks = fields.required(object.field("tasks"));
    let before = fields.is_clean();
    let members = read_members(fields, tasks, Within::Outcome);
    if !before || !fields.is_clean() {
        return None;
    }
    let keys: Vec<_> = members.iter().map(|member| member.key.clone()).collect();
    Members::of_outcome(members).map_err(|flaws| refuse(fields, tasks.at, &keys, flaws)).ok()
}

fn read_members(fields: &mut Fields, tasks: Field<'_, '_>, within: Within) -> Vec<Member> {
    let most = match within {
        Within::Workflow | Within::Schedule => WORKFLOW_TASKS,
        Within::Outcome => THEN_TASKS,
    };
    let pairs = fields.pairs(tasks, most + 1, "an object of tasks by key");
    if pairs.len() > most {
        fields.refuse(tasks.at, "TOO_MANY", format!("may have {most} tasks"));
        return Vec::new();
    }
    let (mut members, mut seen) = (Vec::with_capacity(pairs.len()), HashSet::new());
    for (key, value) in pairs {
        let name = shorten(&key);
        let at = tasks.at.field(&name);
        if !is_key(&key) {
            let detail = format!("a key matches [A-Za-z0-9_][A-Za-z0-9._-]{{0,{}}}", KEY_CHARS - 1);
            fields.refuse(at, "INVALID_NAME", detail);
        }
        if !seen.insert(key.clone()) {
            fields.refuse(at, "DUPLICATE_FIELD", "is given twice");
        }
        members.extend(read_member(fields, key, Field { value: Some(value), at }, within));
    }
    members
}

fn read_member(
    fields: &mut Fields,
    key: String,
    task: Field<'_, '_>,
    within: Within,
) -> Option<Member> {
    let object = fields.named_object::<SubmitRequest>(task, "a task")?;
    let draft = draft(fields, &object);
    let list = object.field("dependsOn");
    let depends_on = read_needed(fields, list);
    let outside = object.field("dependencies");
    if list.is_given() && outside.is_given() {
        let detail = "give dependsOn or dependencies, not both";
        fields.refuse(outside.at, "CONFLICTING_FIELDS", detail);
    }
    let (of, refused): (_, &[&'static str]) = match within {
        Within::Workflow => ("a workflow", &["workflowId", "idempotencyKey"]),
        Within::Outcome => ("an outcome", &["workflowId", "idempotencyKey", "dependencies"]),
        Within::Schedule => {
            task_fields::refuse_of_submit(fields, &object, &OF_SUBMIT);
            ("a workflow", &[])
        }
    };
    for name in refused {
        let field = object.field(name);
        if field.is_given() {
            let detail = format!("does not go with a task of {of}");
            fields.refuse(field.at, "CONFLICTING_FIELDS", detail);
        }
    }
    match draft.check() {
        Ok(spec) => Some(Member { key, spec, depends_on }),
        Err(found) => {
            fields.absorb(task.at, found);
            None
        }
    }
}

fn read_needed(fields: &mut Fields, list: Field<'_, '_>) -> Vec<Needed> {
    let items = fields.list(list, DEPENDENCIES);
    let read = |(index, value): (usize, &RawValue)| {
        let item = list.item(index, value);
        if !value.get().starts_with('{') {
            let key = fields.string(item)?;
            return Some(Needed { key, on: Default::default() });
        }
        let object = fields.named_object::<NeededOn>(item, "a dependency")?;
        let key = fields.required(object.field("task"));
        let key = fields.string(key);
        let on = read_condition(fields, object.field("on"));
        Some(Needed { key: key?, on: on? })
    };
    items.into_iter().enumerate().filter_map(read).collect()
}

fn is_key(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let rest = |c: char| first(c) || c == '.' || c == '-';
    text.starts_with(first) && text.chars().all(rest) && text.len() <= KEY_CHARS
}

/// Notes what is wrong with the edges between tasks.
fn refuse(fields: &mut Fields, tasks: Pointer<'_>, keys: &[String], flaws: Vec<Flaw>) {
    for flaw in flaws {
        let detail = flaw.to_string();
        let (task, edge, code) = match flaw {
            Flaw::TooManyTasks { .. } | Flaw::TooManyEdges { .. } => (None, None, "TOO_MANY"),
            Flaw::TooManyParents { task, .. } | Flaw::TooManyChildren { task, .. } => {
                (Some(task), None, "TOO_MANY")
            }
            Flaw::SelfEdge { task, edge } => (Some(task), Some(edge), "SELF_DEPENDENCY"),
            Flaw::UnknownKey { task, edge, .. } => (Some(task), Some(edge), "UNKNOWN_TASK"),
            Flaw::DuplicateEdge { task, edge, .. } => {
                (Some(task), Some(edge), "DUPLICATE_DEPENDENCY")
            }
            Flaw::Cycle { task, .. } => (Some(task), None, "CYCLE"),
        };
        let Some(key) = task.and_then(|task| keys.get(task)) else {
            fields.refuse(tasks, code, detail);
            continue;
        };
        let task = tasks.field(key);
        let list = task.field("dependsOn");
        fields.refuse(edge.map_or(list, |edge| list.item(edge)), code, detail);
    }
}

/// Where each task that is named by its id stands, for answers that name it.
pub(crate) fn places(spec: &WorkflowSpec) -> BTreeMap<duly_core::id::TaskId, String> {
    let mut places = BTreeMap::new();
    for member in spec.members.tasks() {
        for dependency in &member.spec.dependencies {
            let tasks = Pointer::Root;
            let tasks = tasks.field("tasks");
            let task = tasks.field(&member.key);
            let place = task.field("dependencies").to_string();
            places.entry(dependency.parent).or_insert(place);
        }
    }
    places
}
