//! Tasks that are asked for together: as a workflow, or with an outcome.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::plan::{Flaw, Needed, Plan};
use crate::json;
use crate::limits::{THEN_TASKS, WORKFLOW_TASKS};
use crate::name::TenantName;
use crate::submit::Spec;
use crate::trace::TraceParent;

/// One of several tasks that are asked for together.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its name among them.
    pub key: String,
    /// What it is.
    pub spec: Spec,
    /// What it waits for among them.
    pub depends_on: Vec<Needed>,
}

/// Tasks that are asked for together, and an order in which parents come first.
#[derive(Clone, Debug, PartialEq)]
pub struct Members {
    tasks: Vec<Member>,
    plan: Plan,
}

impl Members {
    /// The tasks of a workflow.
    pub fn of_workflow(tasks: Vec<Member>) -> Result<Self, Vec<Flaw>> {
        Self::new(tasks, WORKFLOW_TASKS)
    }

    /// The tasks that an outcome adds.
    pub fn of_outcome(tasks: Vec<Member>) -> Result<Self, Vec<Flaw>> {
        Self::new(tasks, THEN_TASKS)
    }

    fn new(tasks: Vec<Member>, most: usize) -> Result<Self, Vec<Flaw>> {
        let edges = tasks.iter().map(|task| (task.key.as_str(), task.depends_on.as_slice()));
        let plan = Plan::new(edges, most)?;
        Ok(Self { tasks, plan })
    }

    /// The same, marked with the request that they come from.
    #[must_use]
    pub fn traced(mut self, trace: Option<&TraceParent>) -> Self {
        for task in &mut self.tasks {
            task.spec.trace = trace.cloned();
        }
        self
    }

    /// The tasks, as they were given.
    pub fn tasks(&self) -> &[Member] {
        &self.tasks
    }

    /// Their order.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    fn hash(&self, into: &mut Sha256) {
        let by_key: BTreeMap<_, _> = self.tasks.iter().map(|task| (&task.key, task)).collect();
        for (key, task) in by_key {
            json::hash_bytes(key.as_bytes(), into);
            into.update(task.spec.body_hash());
            let mut needed: Vec<_> =
                task.depends_on.iter().map(|it| (it.key.as_str(), it.on)).collect();
            needed.sort_unstable();
            into.update((needed.len() as u64).to_be_bytes());
            for (key, on) in needed {
                json::hash_bytes(key.as_bytes(), into);
                json::hash_bytes(on.as_str().as_bytes(), into);
            }
        }
    }
}

/// A workflow whose every field holds.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowSpec {
    /// For people; empty if it has none.
    pub name: String,
    /// Searchable marks.
    pub labels: BTreeMap<String, String>,
    /// Whether the first failure that is not handled cancels what is open.
    pub fail_fast: bool,
    /// Makes a repeated submit answer with the first one's workflow.
    pub idempotency_key: Option<String>,
    /// Its tasks.
    pub members: Members,
}

impl WorkflowSpec {
    /// Hash of what was asked for, to tell a repeated submit from a reused key.
    pub fn body_hash(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        json::hash_bytes(self.name.as_bytes(), &mut hasher);
        hasher.update([u8::from(self.fail_fast)]);
        hasher.update((self.labels.len() as u64).to_be_bytes());
        for (key, value) in &self.labels {
            json::hash_bytes(key.as_bytes(), &mut hasher);
            json::hash_bytes(value.as_bytes(), &mut hasher);
        }
        self.members.hash(&mut hasher);
        hasher.finalize().into()
    }
}

/// Tasks that an outcome adds, before they have ids.
#[derive(Clone, Debug, PartialEq)]
pub struct Added {
    /// Whose task the outcome is of.
    pub tenant: TenantName,
    /// The tasks. Those that wait for none of the others wait for the task of the outcome.
    pub members: Members,
}
