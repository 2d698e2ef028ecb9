//! What a schedule runs: a task or a workflow, as for a submit, without what belongs to one submit alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::back_off::Asked;
use crate::name::{QueueName, TypeName};
use crate::submit::{FieldError, Spec, Start};
use crate::task::Priority;
use crate::workflow::Condition;
use crate::workflow::plan::Needed;
use crate::workflow::request::{Member, Members, WorkflowSpec};

/// What the slots of a schedule run.
#[derive(Clone, Debug, PartialEq)]
pub enum Template {
    /// One task.
    Task(Box<Spec>),
    /// A workflow.
    Workflow(Box<WorkflowSpec>),
}

impl Template {
    /// A template of this task. Pointers of errors begin at the fields of the task.
    pub fn task(spec: Spec) -> Result<Self, Vec<FieldError>> {
        let errors = misplaced(&spec);
        if errors.is_empty() { Ok(Self::Task(Box::new(spec))) } else { Err(errors) }
    }

    /// A template of this workflow. Pointers of errors begin at the fields of the workflow.
    pub fn workflow(spec: WorkflowSpec) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        if spec.idempotency_key.is_some() {
            errors.push(of_one_submit("idempotencyKey"));
        }
        for member in spec.members.tasks() {
            let prefix = FieldError::of(&member.key, "", "").pointer;
            let within = |error: FieldError| FieldError {
                pointer: format!("/tasks{prefix}{}", error.pointer),
                ..error
            };
            errors.extend(misplaced(&member.spec).into_iter().map(within));
        }
        if errors.is_empty() { Ok(Self::Workflow(Box::new(spec))) } else { Err(errors) }
    }

    /// The text from which [`Self::decode`] makes the same template.
    pub fn encode(&self) -> String {
        let stored = match self {
            Self::Task(spec) => Stored::Task(StoredTask::from(&**spec)),
            Self::Workflow(spec) => Stored::Workflow(StoredWorkflow::from(&**spec)),
        };
        serde_json::to_string(&stored).expect("a template is JSON")
    }

    /// Reads a stored template; nothing if the text is damaged.
    pub fn decode(text: &str) -> Option<Self> {
        Some(match serde_json::from_str(text).ok()? {
            Stored::Task(task) => Self::Task(Box::new(task.spec()?)),
            Stored::Workflow(workflow) => Self::Workflow(Box::new(workflow.spec()?)),
        })
    }
}

/// The fields of a task that belong to one submit alone.
fn misplaced(spec: &Spec) -> Vec<FieldError> {
    let given = [
        ("runAt", matches!(spec.start, Start::At(_))),
        ("idempotencyKey", spec.idempotency_key.is_some()),
        ("dependencies", !spec.dependencies.is_empty()),
        ("workflowId", spec.workflow.is_some()),
    ];
    given.into_iter().filter(|(_, given)| *given).map(|(name, _)| of_one_submit(name)).collect()
}

fn of_one_submit(name: &str) -> FieldError {
    FieldError::of(name, "UNSUPPORTED_FIELD", "belongs to one submit, and cannot be in a schedule")
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Stored {
    Task(StoredTask),
    Workflow(StoredWorkflow),
}

#[derive(Serialize, Deserialize)]
struct StoredTask {
    task_type: TypeName,
    queue: QueueName,
    priority: u8,
    delay_ms: u64,
    jitter_ms: u64,
    retries: Option<u32>,
    back_off: Asked,
    timeout_ms: Option<u64>,
    labels: BTreeMap<String, String>,
    payload: String,
    render: bool,
}

impl From<&Spec> for StoredTask {
    fn from(spec: &Spec) -> Self {
        let delay = match spec.start {
            Start::After(delay) => delay,
            Start::At(_) => Duration::ZERO,
        };
        Self {
            task_type: spec.task_type.clone(),
            queue: spec.queue.clone(),
            priority: spec.priority.level(),
            delay_ms: millis(delay),
            jitter_ms: millis(spec.jitter),
            retries: spec.retries,
            back_off: spec.back_off,
            timeout_ms: spec.timeout.map(millis),
            labels: spec.labels.clone(),
            payload: spec.payload.to_string(),
            render: spec.render,
        }
    }
}

impl StoredTask {
    fn spec(self) -> Option<Spec> {
        Some(Spec {
            task_type: self.task_type,
            queue: self.queue,
            priority: Priority::new(self.priority)?,
            start: Start::After(Duration::from_millis(self.delay_ms)),
            jitter: Duration::from_millis(self.jitter_ms),
            retries: self.retries,
            back_off: self.back_off,
            timeout: self.timeout_ms.map(Duration::from_millis),
            labels: self.labels,
            payload: Arc::from(self.payload),
            idempotency_key: None,
            dependencies: Vec::new(),
            workflow: None,
            render: self.render,
            trace: None,
        })
    }
}

#[derive(Serialize, Deserialize)]
struct StoredWorkflow {
    name: String,
    labels: BTreeMap<String, String>,
    fail_fast: bool,
    members: Vec<StoredMember>,
}

#[derive(Serialize, Deserialize)]
struct StoredMember {
    key: String,
    task: StoredTask,
    depends_on: Vec<(String, Condition)>,
}

impl From<&WorkflowSpec> for StoredWorkflow {
    fn from(spec: &WorkflowSpec) -> Self {
        let member = |member: &Member| StoredMember {
            key: member.key.clone(),
            task: StoredTask::from(&member.spec),
            depends_on: member.depends_on.iter().map(|it| (it.key.clone(), it.on)).collect(),
        };
        Self {
            name: spec.name.clone(),
            labels: spec.labels.clone(),
            fail_fast: spec.fail_fast,
            members: spec.members.tasks().iter().map(member).collect(),
        }
    }
}

impl StoredWorkflow {
    fn spec(self) -> Option<WorkflowSpec> {
        let mut members = Vec::with_capacity(self.members.len());
        for StoredMember { key, task, depends_on } in self.members {
            let depends_on = depends_on.into_iter().map(|(key, on)| Needed { key, on }).collect();
            members.push(Member { key, spec: task.spec()?, depends_on });
        }
        Some(WorkflowSpec {
            name: self.name,
            labels: self.labels,
            fail_fast: self.fail_fast,
            idempotency_key: None,
            members: Members::of_workflow(members).ok()?,
        })
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TaskId;
    use crate::submit::Draft;
    use crate::time::Timestamp;
    use crate::workflow::Dependency;

    fn draft(task_type: &str) -> Draft {
        Draft { task_type: Some(task_type.to_owned()), ..Draft::default() }
    }

    #[test]
    fn a_task_survives_its_text() {
        let given = Draft {
            payload: Some(r#"{"n": 12345678901234567890.5}"#.to_owned()),
            delay_seconds: Some(1.5),
            retries: Some(7.0),
            timeout_seconds: Some(9.0),
            labels: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
            ..draft("email")
        };
        let template = Template::task(given.check().unwrap()).unwrap();
        assert_eq!(Template::decode(&template.encode()), Some(template));
    }

    #[test]
    fn a_workflow_survives_its_text() {
        let member = |key: &str, needs: &[&str]| Member {
            key: key.to_owned(),
            spec: draft("email").check().unwrap(),
            depends_on: needs
                .iter()
                .map(|key| Needed { key: (*key).to_owned(), on: Condition::Done })
                .collect(),
        };
        let spec = WorkflowSpec {
            name: "report".to_owned(),
            labels: BTreeMap::new(),
            fail_fast: true,
            idempotency_key: None,
            members: Members::of_workflow(vec![member("a", &[]), member("b", &["a"])]).unwrap(),
        };
        let template = Template::workflow(spec).unwrap();
        assert_eq!(Template::decode(&template.encode()), Some(template));
    }

    #[test]
    fn what_belongs_to_one_submit_is_refused() {
        let parent = TaskId::mint(Timestamp::EPOCH, 0, 0);
        let given = Draft {
            run_at: Some("2030-01-01T00:00:00Z".to_owned()),
            idempotency_key: Some("k".to_owned()),
            dependencies: vec![Dependency { parent, on: Condition::Success }],
            ..draft("email")
        };
        let errors = Template::task(given.check().unwrap()).unwrap_err();
        let pointers: Vec<_> = errors.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(pointers, ["/runAt", "/idempotencyKey", "/dependencies"]);
        assert_eq!(Template::decode("{"), None);
    }
}
