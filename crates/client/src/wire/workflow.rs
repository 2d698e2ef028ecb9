//! Workflows: tasks that depend on each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use duly_core::id::{TaskId, WorkflowId};
use duly_core::state::Status;
use duly_core::submit::{Spec, Start};
use duly_core::time::Timestamp;
use duly_core::workflow::plan::Needed;
use duly_core::workflow::request::{Added, Member, WorkflowSpec};
use duly_core::workflow::{Condition, Dependency, Workflow, WorkflowStatus};
use serde::{Deserialize, Serialize};

use super::lease::seconds;
use super::task::verbatim;
use super::{Backoff, ScheduleSlot, SubmitRequest};

/// A task that another one waits for: its id, or its id and how it must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "Dependency", as = Dependency))]
pub enum DependencyView {
    /// It must succeed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    Task(TaskId),
    /// It must end like this.
    On(DependencyOn),
}

/// A task that another one waits for, and how it must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DependencyOn {
    /// The task.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub task_id: TaskId,
    /// `success` (if absent), `failure` or `done`, which is any end.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "success"))]
    pub on: Condition,
}

/// Another task of the same workflow: its key, or its key and how it must end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum NeededTask {
    /// It must succeed.
    Key(String),
    /// It must end like this.
    On(NeededOn),
}

/// Another task of the same workflow, and how it must end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NeededOn {
    /// The task's key.
    pub task: String,
    /// `success` (if absent), `failure` or `done`, which is any end.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "failure"))]
    pub on: Condition,
}

/// A workflow to submit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = workflow_example))]
pub struct WorkflowRequest {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 200))]
    pub name: Option<String>,
    /// Searchable marks, at most 32; keys and values up to 200 characters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether the first failure that is not handled cancels what is open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fail_fast: bool,
    /// Makes a repeated submit answer with the first one's workflow, for 24 hours. The header
    /// `Idempotency-Key` says the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 255))]
    pub idempotency_key: Option<String>,
    /// Its tasks by key: `[A-Za-z0-9_][A-Za-z0-9._-]{0,199}`. At most 10,000 with 100,000 edges.
    pub tasks: BTreeMap<String, SubmitRequest>,
}

/// Tasks that a success adds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ThenView {
    /// The tasks by key, at most 1,000. Those without `dependsOn` depend on the task of the outcome.
    pub tasks: BTreeMap<String, SubmitRequest>,
}

/// A workflow that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkflowAnswer {
    /// Names the workflow for ever.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub workflow_id: WorkflowId,
    /// Where it is in its life.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "RUNNING"))]
    pub status: WorkflowStatus,
    /// The ids of its tasks by key.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, String>))]
    pub tasks: BTreeMap<String, TaskId>,
}

/// A workflow without its tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "WorkflowSummary", as = WorkflowSummary))]
pub struct WorkflowSummary {
    /// Names the workflow for ever.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub workflow_id: WorkflowId,
    /// For people; empty if it has none.
    pub name: String,
    /// `RUNNING`, `SUCCESS`, `FAILED` or `CANCELLED`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "RUNNING"))]
    pub status: WorkflowStatus,
    /// Searchable marks.
    pub labels: BTreeMap<String, String>,
    /// Whether the first failure that is not handled cancels what is open.
    pub fail_fast: bool,
    /// When it was submitted.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When its last task ended.
    #[cfg_attr(feature = "openapi", schema(required = true, value_type = Option<String>, format = DateTime))]
    pub finished_at: Option<Timestamp>,
    /// Tasks that have not ended.
    pub open: u64,
    /// Why it was cancelled, if it was.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub cancel_reason: Option<String>,
    /// The schedule and the slot that started it.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub schedule: Option<ScheduleSlot>,
}

/// A workflow, and where its tasks are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "Workflow", as = Workflow))]
pub struct WorkflowView {
    /// The workflow.
    #[serde(flatten)]
    pub summary: WorkflowSummary,
    /// How many tasks are in each state.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u64>,
        example = json!({"BLOCKED": 1, "PENDING": 0, "RUNNING": 2, "SUCCESS": 1, "FAILED": 0,
            "CANCELLED": 0})))]
    pub counts: BTreeMap<Status, u64>,
    /// Failed tasks of which a `failure` or `done` edge takes care.
    pub handled_failures: u64,
    /// The chain of tasks that its end waited for, or waits for; the first comes first.
    pub critical_path: Vec<PathStepView>,
}

/// A task of the critical path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "PathStep", as = PathStep))]
pub struct PathStepView {
    /// Its key in the workflow.
    pub key: String,
    /// The task.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub task_id: TaskId,
    /// Where it is in its life.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "SUCCESS"))]
    pub status: Status,
    /// When a worker last got it.
    #[cfg_attr(feature = "openapi", schema(required = true, value_type = Option<String>, format = DateTime))]
    pub leased_at: Option<Timestamp>,
    /// When its run ended.
    #[cfg_attr(feature = "openapi", schema(required = true, value_type = Option<String>, format = DateTime))]
    pub finished_at: Option<Timestamp>,
}

/// One page of workflows, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkflowPage {
    /// The workflows.
    pub items: Vec<WorkflowSummary>,
    /// Give it as `cursor` to get the next page; `null` on the last one.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub next_cursor: Option<String>,
}

/// The tasks of a workflow and the edges between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "Graph", as = Graph))]
pub struct GraphView {
    /// The workflow.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub workflow_id: WorkflowId,
    /// For people; empty if it has none.
    pub name: String,
    /// Where it is in its life.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "RUNNING"))]
    pub status: WorkflowStatus,
    /// Its tasks, by id: parents come first.
    pub nodes: Vec<NodeInGraph>,
    /// The edges to them, from tasks of this workflow or from others.
    pub edges: Vec<EdgeView>,
}

/// A task in a graph, or several identical ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeInGraph {
    /// The task, or the first of them.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub task_id: TaskId,
    /// Its key in the workflow.
    pub key: String,
    /// Names the handler.
    pub r#type: String,
    /// Where it is in its life.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "BLOCKED"))]
    pub status: Status,
    /// Counts submit and replays, from 1.
    pub run: u32,
    /// When a worker last got it.
    #[cfg_attr(feature = "openapi", schema(required = true, value_type = Option<String>, format = DateTime))]
    pub leased_at: Option<Timestamp>,
    /// When its run ended.
    #[cfg_attr(feature = "openapi", schema(required = true, value_type = Option<String>, format = DateTime))]
    pub finished_at: Option<Timestamp>,
    /// How many tasks it stands for: those of the same type and state with the same parents and
    /// children. 1 unless the graph is collapsed.
    pub count: u64,
}

/// An edge of a graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(title = "Edge", as = Edge))]
pub struct EdgeView {
    /// The task that must end.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub from: TaskId,
    /// The task that waits for it.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub to: TaskId,
    /// How it must end.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "success"))]
    pub on: Condition,
}

impl From<Dependency> for DependencyView {
    fn from(Dependency { parent, on }: Dependency) -> Self {
        match on {
            Condition::Success => Self::Task(parent),
            Condition::Failure | Condition::Done => Self::On(DependencyOn { task_id: parent, on }),
        }
    }
}

impl ThenView {
    /// The tasks that an outcome adds.
    pub fn of(added: &Added) -> Self {
        let task = |member: &Member| (member.key.clone(), SubmitRequest::from(member));
        Self { tasks: added.members.tasks().iter().map(task).collect() }
    }

    /// As JSON text.
    pub fn to_text(&self) -> Arc<str> {
        serde_json::to_string(self).expect("tasks can always be written as JSON").into()
    }
}

impl From<&Spec> for SubmitRequest {
    fn from(spec: &Spec) -> Self {
        let (delay, run_at) = match spec.start {
            Start::After(delay) if delay.is_zero() => (None, None),
            Start::After(delay) => (Some(seconds(delay)), None),
            Start::At(instant) => (None, Some(instant)),
        };
        let back_off = &spec.back_off;
        let backoff = Backoff {
            strategy: back_off.strategy.map(|it| word(&it)),
            base_seconds: back_off.base.map(seconds),
            factor: back_off.factor,
            cap_seconds: back_off.cap.map(seconds),
            jitter: back_off.jitter.map(|it| word(&it)),
        };
        Self {
            r#type: spec.task_type.as_str().to_owned(),
            payload: Some(verbatim(&spec.payload)),
            queue: Some(spec.queue.as_str().to_owned()),
            priority: Some(spec.priority.level()),
            delay_seconds: delay,
            run_at,
            retries: spec.retries,
            backoff: (backoff != Backoff::default()).then_some(backoff),
            timeout_seconds: spec.timeout.map(seconds),
            jitter_seconds: (!spec.jitter.is_zero()).then(|| seconds(spec.jitter)),
            labels: spec.labels.clone(),
            render: spec.render,
            ..Self::default()
        }
    }
}

impl From<&Member> for SubmitRequest {
    fn from(Member { spec, depends_on, .. }: &Member) -> Self {
        let needed = |it: &Needed| match it.on {
            Condition::Success => NeededTask::Key(it.key.clone()),
            on @ (Condition::Failure | Condition::Done) => {
                NeededTask::On(NeededOn { task: it.key.clone(), on })
            }
        };
        Self { depends_on: depends_on.iter().map(needed).collect(), ..Self::from(spec) }
    }
}

impl From<&WorkflowSpec> for WorkflowRequest {
    fn from(spec: &WorkflowSpec) -> Self {
        let task = |member: &Member| (member.key.clone(), SubmitRequest::from(member));
        Self {
            name: Some(spec.name.clone()).filter(|name| !name.is_empty()),
            labels: spec.labels.clone(),
            fail_fast: spec.fail_fast,
            idempotency_key: spec.idempotency_key.clone(),
            tasks: spec.members.tasks().iter().map(task).collect(),
        }
    }
}

/// How a policy's word is spelled in JSON.
fn word(word: &impl Serialize) -> String {
    match serde_json::to_value(word) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}

impl From<Workflow> for WorkflowSummary {
    fn from(workflow: Workflow) -> Self {
        Self {
            workflow_id: workflow.id,
            name: workflow.name,
            status: workflow.status,
            schedule: ScheduleSlot::of(&workflow.labels),
            labels: workflow.labels,
            fail_fast: workflow.fail_fast,
            created_at: workflow.created_at,
            finished_at: workflow.finished_at,
            open: workflow.open,
            cancel_reason: workflow.cancelled,
        }
    }
}

#[cfg(feature = "openapi")]
fn workflow_example() -> serde_json::Value {
    serde_json::json!({
        "name": "report",
        "tasks": {
            "fetch": {"type": "echo", "payload": {"rows": 3}},
            "report": {
                "type": "echo", "dependsOn": ["fetch"], "render": true,
                "payload": {"rows": "{{ parents.fetch.result.rows }}"}
            },
            "apologise": {"type": "echo", "dependsOn": [{"task": "fetch", "on": "failure"}]}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_is_an_id_or_an_object() {
        let id = "01920000-0000-7000-8000-000000000000";
        for (text, on) in [
            (format!(r#""{id}""#), Condition::Success),
            (format!(r#"{{"taskId":"{id}","on":"done"}}"#), Condition::Done),
        ] {
            let read: DependencyView = serde_json::from_str(&text).unwrap();
            let dependency = Dependency { parent: id.parse().unwrap(), on };
            assert_eq!(DependencyView::from(dependency), read);
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
    }

    #[test]
    fn the_example_of_the_issue_is_read() {
        let text = r#"{"name":"n","tasks":{"a":{"type":"t"},
            "b":{"type":"t","dependsOn":["a",{"task":"c","on":"failure"}]}}}"#;
        let read: WorkflowRequest = serde_json::from_str(text).unwrap();
        assert_eq!(read.tasks["b"].depends_on.len(), 2);
    }
}
