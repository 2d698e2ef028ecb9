//! Submit, read and control workflows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use duly_core::id::{TaskId, WorkflowId};
use duly_core::limits::CHILDREN;
use duly_core::name::TenantName;
use duly_core::ports::store::{
    self, Graph, ListWorkflows, ReplayedDownstream, SubmittedWorkflow, Usage, WorkflowChange,
    WorkflowList, WorkflowState,
};
use duly_core::settings::Settings;
use duly_core::state::Status;
use duly_core::task::{Idempotency, NewTask, Task};
use duly_core::time::Timestamp;
use duly_core::workflow::critical_path::critical_path;
use duly_core::workflow::request::{Member, WorkflowSpec};
use duly_core::workflow::{Dependency, Links, Membership, NewWorkflow, WorkflowStatus};

use super::control;
use super::payloads::BadPayload;
use super::submit::{Minted, new_task};
use super::tenants::Denied;
use crate::engine::Engine;
use crate::quotas::admit_one;

/// How long a wait for the end of a workflow leaves the store alone: at first, and at most.
const POLL: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
/// How much longer than a look the pause after it is: each look counts all tasks of the workflow.
const REST: u32 = 10;

/// A workflow that was accepted.
#[derive(Clone, Debug)]
pub struct AcceptedWorkflow {
    /// Its id.
    pub id: WorkflowId,
    /// Where it is in its life.
    pub status: WorkflowStatus,
    /// Its tasks by key.
    pub tasks: BTreeMap<String, TaskId>,
    /// Whether the idempotency key led to an earlier workflow.
    pub replayed: bool,
}

/// Why a workflow was not stored.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// A task is due later than any task may be.
    #[error("runAt lies more than 400 days ahead")]
    TooFarAhead {
        /// Its key.
        key: String,
    },
    /// The idempotency key was used with another body before.
    #[error("this idempotency key was used within the last 24 hours with a different body")]
    KeyReused,
    /// A task would open one lane too many.
    #[error("the installation already holds the largest number of distinct queue and type pairs")]
    LaneLimit,
    /// A task depends on a task outside of the workflow that is not there.
    #[error("depends on task {parent}, which does not exist")]
    UnknownParent {
        /// The parent.
        parent: TaskId,
    },
    /// A task outside of the workflow has too many children already.
    #[error("task {parent} has {CHILDREN} children, and may have no more")]
    TooManyChildren {
        /// The parent.
        parent: TaskId,
    },
    /// The tenant may not have a payload.
    #[error("{why}")]
    Payload {
        /// The key of the task.
        key: String,
        /// Why.
        why: BadPayload,
    },
    /// The tenant may not do it now.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The engine is shutting down.
    #[error("the server is shutting down")]
    Closed,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Why an order for a workflow was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such workflow.
    #[error("there is no workflow with this id")]
    NotFound,
    /// The order does not apply to the workflow's state.
    #[error("the workflow is {status}")]
    Conflict {
        /// The state.
        status: WorkflowStatus,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// A step of the chain of tasks that a workflow's end waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// The task.
    pub task: TaskId,
    /// Its name in the workflow.
    pub key: String,
    /// Where it is in its life.
    pub status: Status,
    /// When its last lease was granted.
    pub granted_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// A workflow with all that is known of it as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowView {
    /// The workflow, and how many of its tasks are in which state.
    pub state: WorkflowState,
    /// The chain of tasks that its end waited for.
    pub critical_path: Arc<[PathStep]>,
}

impl Engine {
    /// Stores a workflow with all its tasks, and returns once it is durable.
    pub async fn submit_workflow(
        &self,
        tenant: &TenantName,
        spec: WorkflowSpec,
    ) -> Result<AcceptedWorkflow, Refused> {
        if self.is_closing() {
            return Err(Refused::Closed);
        }
        self.admit_workflow(tenant, &spec).await?;
        let now = self.store().now().await?;
        let workflow = self.new_workflow(tenant, spec, now).await?;
        let id = workflow.id;
        let keys = workflow.tasks.iter().filter_map(key_and_id).collect();
        match self.store().submit_workflow(workflow).await? {
            SubmittedWorkflow::Stored { .. } => {
                self.cascade_soon();
                let status = WorkflowStatus::Running;
                Ok(AcceptedWorkflow { id, status, tasks: keys, replayed: false })
            }
            SubmittedWorkflow::Replayed { id } => {
                let first = self.store().graph(tenant, id).await?;
                // The first workflow was deleted and its key is still kept.
                let Graph { workflow, nodes, .. } = first.ok_or(Refused::KeyReused)?;
                let tasks = nodes.into_iter().map(|node| (node.key, node.task)).collect();
                Ok(AcceptedWorkflow { id, status: workflow.status, tasks, replayed: true })
            }
            SubmittedWorkflow::KeyReused => Err(Refused::KeyReused),
            SubmittedWorkflow::LaneLimit => Err(Refused::LaneLimit),
            SubmittedWorkflow::UnknownParent { parent } => Err(Refused::UnknownParent { parent }),
            SubmittedWorkflow::TooManyChildren { parent } => {
                Err(Refused::TooManyChildren { parent })
            }
        }
    }

    /// Refuses a workflow of a suspended tenant, and one beyond its quotas.
    async fn admit_workflow(
        &self,
        tenant: &TenantName,
        spec: &WorkflowSpec,
    ) -> Result<(), Refused> {
        let quotas = self.quotas_of(tenant).await?;
        let members = spec.members.tasks();
        let rules = self.payload_rules(tenant).await?;
        for Member { key, spec, .. } in members {
            let bad = |why| Refused::Payload { key: key.clone(), why };
            rules.check(&spec.payload).map_err(bad)?;
        }
        let open = admit_one(self.store(), tenant, Usage::Workflows, quotas.workflows).await?;
        open.map_err(Denied::from)?;
        Ok(self.admit_tasks(tenant, members.len()).await??)
    }

    async fn new_workflow(
        &self,
        tenant: &TenantName,
        spec: WorkflowSpec,
        now: Timestamp,
    ) -> Result<NewWorkflow, Refused> {
        let members = spec.members.tasks();
        if let Some(late) = members.iter().find(|member| member.spec.is_too_far(now)) {
            return Err(Refused::TooFarAhead { key: late.key.clone() });
        }
        let defaults = self.defaults_of(tenant).await?;
        let random = self.draw(2 * members.len() + 1);
        let id = WorkflowId::mint(now, self.next_ordinal(), random[2 * members.len()]);
        let mut random = random.as_chunks::<2>().0.iter().copied();
        let tasks = member_tasks(tenant, id, &spec, &defaults, |member, latest| {
            let [random, entropy] = random.next().expect("two were drawn for each");
            let id = self.mint_after(latest, member.spec.run_at(now, entropy), random);
            MintedMember { id, now, entropy }
        });
        let body = spec.idempotency_key.as_ref().map(|_| spec.body_hash());
        let idempotency = spec.idempotency_key.zip(body);
        Ok(NewWorkflow {
            id,
            tenant: tenant.clone(),
            name: spec.name,
            labels: spec.labels,
            fail_fast: spec.fail_fast,
            idempotency: idempotency.map(|(key, body)| Idempotency { key, body }),
            tasks,
        })
    }

    /// One workflow.
    pub async fn workflow(
        &self,
        tenant: &TenantName,
        id: WorkflowId,
    ) -> store::Result<Option<WorkflowView>> {
        // The graph tells the state, too: it is asked for first only where the path may be known.
        if self.critical_paths().knows(id) {
            let Some(state) = self.store().workflow(tenant, id).await? else { return Ok(None) };
            if let Some(critical_path) = self.critical_paths().find(&state) {
                return Ok(Some(WorkflowView { state, critical_path }));
            }
        }
        let Some(graph) = self.store().graph(tenant, id).await? else { return Ok(None) };
        let step = |node: &store::Node| PathStep {
            task: node.task,
            key: node.key.clone(),
            status: node.status,
            granted_at: node.granted_at,
            finished_at: node.finished_at,
        };
        let path = critical_path(&graph.nodes, &graph.edges);
        let path: Arc<[_]> = path.into_iter().map(step).collect();
        let state = match graph.state() {
            Some(state) => state,
            None => match self.store().workflow(tenant, id).await? {
                Some(state) => state,
                None => return Ok(None),
            },
        };
        self.critical_paths().keep(&state, &path);
        Ok(Some(WorkflowView { state, critical_path: path }))
    }

    /// One workflow as soon as it has ended, at the latest after `wait`.
    pub async fn wait_for_workflow(
        &self,
        tenant: &TenantName,
        id: WorkflowId,
        wait: Duration,
    ) -> store::Result<Option<WorkflowView>> {
        let deadline = tokio::time::Instant::now() + wait;
        let (mut pause, longest) = POLL;
        loop {
            let began = tokio::time::Instant::now();
            let state = self.store().workflow(tenant, id).await?;
            let rest = began.elapsed() * REST;
            let runs = |it: &WorkflowState| it.workflow.status == WorkflowStatus::Running;
            let is_over = tokio::time::Instant::now() >= deadline || self.is_closing();
            if is_over || !state.as_ref().is_some_and(runs) {
                return self.workflow(tenant, id).await;
            }
            let poll = deadline.min(tokio::time::Instant::now() + pause.max(rest));
            pause = (pause * 2).min(longest);
            tokio::select! {
                () = tokio::time::sleep_until(poll) => {}
                () = self.closing() => {}
            }
        }
    }

    /// One page of workflows, the newest first.
    pub async fn workflows(&self, page: ListWorkflows) -> store::Result<WorkflowList> {
        self.store().workflows(page).await
    }

    /// The tasks and edges of a workflow.
    pub async fn graph(&self, tenant: &TenantName, id: WorkflowId) -> store::Result<Option<Graph>> {
        self.store().graph(tenant, id).await
    }

    /// Cancels a workflow. From then on none of its tasks is released, and what is open is cancelled.
    pub async fn cancel_workflow(
        &self,
        tenant: &TenantName,
        id: WorkflowId,
        reason: String,
    ) -> Result<WorkflowView, Error> {
        let answer = self.store().cancel_workflow(tenant, id, reason).await?;
        self.cascade_now();
        self.changed_workflow(tenant, id, answer).await
    }

    /// Runs the failed tasks of a workflow again.
    pub async fn retry_workflow(
        &self,
        tenant: &TenantName,
        id: WorkflowId,
    ) -> Result<WorkflowView, Error> {
        let answer = self.store().retry_workflow(tenant, id).await?;
        self.changed_workflow(tenant, id, answer).await
    }

    async fn changed_workflow(
        &self,
        tenant: &TenantName,
        id: WorkflowId,
        answer: WorkflowChange,
    ) -> Result<WorkflowView, Error> {
        match answer {
            WorkflowChange::Done { .. } => self.workflow(tenant, id).await?.ok_or(Error::NotFound),
            WorkflowChange::Conflict { status } => Err(Error::Conflict { status }),
            WorkflowChange::Unknown => Err(Error::NotFound),
        }
    }

    /// Runs a task again that has ended, and lets all that depends on it wait for it again.
    pub async fn replay_downstream(
        &self,
        tenant: &TenantName,
        id: TaskId,
    ) -> Result<Task, control::Error> {
        let task = self.get(tenant, id).await?.ok_or(control::Error::NotFound)?;
        if !task.status.is_terminal() {
            return Err(control::Error::Conflict { status: task.status });
        }
        match self.store().replay_downstream(tenant, id, task.run).await? {
            ReplayedDownstream::Done { .. } => {
                self.get(tenant, id).await?.ok_or(control::Error::NotFound)
            }
            ReplayedDownstream::Conflict { task, status } if task == id => {
                Err(control::Error::Conflict { status })
            }
            ReplayedDownstream::Conflict { task, status } => {
                Err(control::Error::OpenDescendant { task, status })
            }
            ReplayedDownstream::Unknown => Err(control::Error::NotFound),
        }
    }
}

/// What a task of a workflow gets beside what was asked for.
pub(crate) struct MintedMember {
    pub(crate) id: TaskId,
    pub(crate) now: Timestamp,
    pub(crate) entropy: u64,
}

/// The tasks of a workflow, parents first. `mint` is told the last of a task's parents, after which its
/// id must come.
pub(crate) fn member_tasks(
    tenant: &TenantName,
    workflow: WorkflowId,
    spec: &WorkflowSpec,
    defaults: &Settings,
    mut mint: impl FnMut(&Member, Option<TaskId>) -> MintedMember,
) -> Vec<NewTask> {
    let (members, plan) = (spec.members.tasks(), spec.members.plan());
    let mut ids: Vec<Option<TaskId>> = vec![None; members.len()];
    let mut tasks = Vec::with_capacity(members.len());
    for index in plan.order.iter().copied() {
        let member = &members[index];
        let within = plan.parents[index].iter();
        let within =
            within.filter_map(|(it, on)| ids[*it].map(|parent| Dependency { parent, on: *on }));
        let mut dependencies: Vec<_> =
            within.chain(member.spec.dependencies.iter().copied()).collect();
        dependencies.sort_unstable();
        let MintedMember { id, now, entropy } =
            mint(member, dependencies.iter().map(|it| it.parent).max());
        ids[index] = Some(id);
        let membership = Some(Membership { id: workflow, key: member.key.clone() });
        let links = Links { dependencies, workflow: membership, render: member.spec.render };
        let minted = Minted { id, now, entropy, links };
        tasks.push(new_task(tenant, member.spec.clone(), defaults, minted));
    }
    tasks
}

fn key_and_id(task: &NewTask) -> Option<(String, TaskId)> {
    let membership = task.links.as_ref()?.workflow.as_ref()?;
    Some((membership.key.clone(), task.id))
}
