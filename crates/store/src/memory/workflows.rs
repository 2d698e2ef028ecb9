//! Workflows and edges in the reference model.

use async_trait::async_trait;
use duly_core::id::{TaskId, WorkflowId};
use duly_core::limits::{CHILDREN, IDEMPOTENCY_KEY_TTL, LANES, PARENT_BYTES, WORKFLOW_TASKS};
use duly_core::name::TenantName;
use duly_core::ports::store::{
    Cascaded, Edge, Error, Graph, ListWorkflows, Node, Parent, ReplayedDownstream, Result,
    Submitted, SubmittedWorkflow, WorkflowChange, WorkflowList, WorkflowState, Workflows,
};
use duly_core::state::Status;
use duly_core::task::{NewTask, Task};
use duly_core::time::Timestamp;
use duly_core::workflow::{EdgeState, NewWorkflow, Workflow, WorkflowStatus};

use super::MemoryStore;
use super::model::{Key, Model};
use crate::audited;

#[async_trait]
impl Workflows for MemoryStore {
    async fn submit_workflow(&self, workflow: NewWorkflow) -> Result<SubmittedWorkflow> {
        if workflow.tasks.len() > WORKFLOW_TASKS {
            return Err(Error::TooLarge { what: "a workflow", limit: WORKFLOW_TASKS });
        }
        let now = self.clock.now();
        let answer = self.model.lock().submit_workflow(&workflow, now);
        self.hint_at(Some(now));
        Ok(answer)
    }

    async fn workflow(&self, tenant: &TenantName, id: WorkflowId) -> Result<Option<WorkflowState>> {
        Ok(self.model.lock().workflow_state(tenant, id))
    }

    async fn workflows(&self, page: ListWorkflows) -> Result<WorkflowList> {
        Ok(self.model.lock().list_workflows(&page))
    }

    async fn graph(&self, tenant: &TenantName, id: WorkflowId) -> Result<Option<Graph>> {
        Ok(self.model.lock().graph(tenant, id))
    }

    async fn parents(&self, tasks: Vec<TaskId>) -> Result<Vec<Vec<Parent>>> {
        let model = self.model.lock();
        Ok(tasks.into_iter().map(|task| model.parents(task)).collect())
    }

    async fn cancel_workflow(
        &self,
        tenant: &TenantName,
        id: WorkflowId,
        reason: String,
    ) -> Result<WorkflowChange> {
        let audited = || audited::cancel_workflow(tenant, id);
        let answer = self.order(audited, |model, _| model.cancel_workflow(tenant, id, reason));
        self.hint_at(Some(self.clock.now()));
        Ok(answer)
    }

    async fn retry_workflow(&self, tenant: &TenantName, id: WorkflowId) -> Result<WorkflowChange> {
        let audited = || audited::retry_workflow(tenant, id);
        let answer = self.order(audited, |model, now| model.retry_workflow(tenant, id, now));
        self.hint_at(Some(self.clock.now()));
        Ok(answer)
    }

    async fn replay_downstream(
        &self,
        tenant: &TenantName,
        task: TaskId,
        run: u32,
    ) -> Result<ReplayedDownstream> {
        let audited = || audited::replay_downstream(tenant, task);
        let again = |model: &mut Model, now| model.replay_downstream(tenant, task, run, now);
        let answer = self.order(audited, again);
        self.hint_at(Some(self.clock.now()));
        Ok(answer)
    }

    async fn cascade(&self, limit: u32) -> Result<Cascaded> {
        let now = self.clock.now();
        let answer = self.model.lock().cascade(limit as usize, now);
        self.hint_at((!answer.cancelled.is_empty()).then_some(now));
        Ok(answer)
    }
}

impl Model {
    pub(super) fn submit_workflow(
        &mut self,
        new: &NewWorkflow,
        now: Timestamp,
    ) -> SubmittedWorkflow {
        if let Some(known) = self.workflows.get(&new.id) {
            return SubmittedWorkflow::Stored { at: known.created_at };
        }
        let key = new.idempotency.as_ref().map(|it| (new.tenant.clone(), it.key.clone()));
        if let (Some(key), Some(idempotency)) = (&key, &new.idempotency)
            && let Some(known) = self.workflow_keys.get(key)
            && self.workflows.contains_key(&known.names)
            && now < known.created_at.plus(IDEMPOTENCY_KEY_TTL)
        {
            let same = known.body == idempotency.body;
            let first = SubmittedWorkflow::Replayed { id: known.names };
            return if same { first } else { SubmittedWorkflow::KeyReused };
        }
        if let Some(refused) = self.refuses(new) {
            return refused;
        }
        let workflow = Workflow {
            id: new.id,
            tenant: new.tenant.clone(),
            name: new.name.clone(),
            labels: new.labels.clone(),
            fail_fast: new.fail_fast,
            status: WorkflowStatus::Running,
            created_at: now,
            finished_at: None,
            open: 0,
            cancelled: None,
        };
        self.tell_of_new_workflow(&workflow, now);
        self.workflows.insert(new.id, workflow);
        if let (Some(key), Some(idempotency)) = (key, &new.idempotency) {
            let known = Key { names: new.id, body: idempotency.body, created_at: now };
            self.workflow_keys.insert(key, known);
        }
        for task in &new.tasks {
            self.lanes.insert(task.lane.clone());
            self.stored(task, None, now);
        }
        SubmittedWorkflow::Stored { at: now }
    }

    /// Why a workflow cannot be stored, if something outside of it speaks against it.
    fn refuses(&self, new: &NewWorkflow) -> Option<SubmittedWorkflow> {
        let mut lanes = self.lanes.clone();
        lanes.extend(new.tasks.iter().map(|task| task.lane.clone()));
        if lanes.len() > LANES && lanes.len() > self.lanes.len() {
            return Some(SubmittedWorkflow::LaneLimit);
        }
        let own = |parent| new.tasks.iter().any(|task| task.id == parent);
        let all = new.tasks.iter().flat_map(NewTask::dependencies);
        let foreign: Vec<_> = all.map(|it| it.parent).filter(|parent| !own(*parent)).collect();
        foreign.iter().find_map(|parent| {
            let more = foreign.iter().filter(|other| *other == parent).count();
            match self.refuses_child(&new.tenant, *parent, more)? {
                Submitted::TooManyChildren { parent } => {
                    Some(SubmittedWorkflow::TooManyChildren { parent })
                }
                _ => Some(SubmittedWorkflow::UnknownParent { parent: *parent }),
            }
        })
    }

    fn refuses_child(&self, tenant: &TenantName, parent: TaskId, more: usize) -> Option<Submitted> {
        let known = self.tasks.get(&parent).filter(|task| task.lane.tenant == *tenant);
        if known.is_none() {
            return Some(Submitted::UnknownParent { parent });
        }
        let children = self.edges.keys().filter(|(from, _)| *from == parent).count();
        (children + more > CHILDREN).then_some(Submitted::TooManyChildren { parent })
    }

    /// Why a task cannot be stored because of what it is tied to.
    pub(super) fn refuses_links(&self, task: &NewTask) -> Option<Submitted> {
        let links = task.links.as_ref()?;
        let tenant = &task.lane.tenant;
        if let Some(membership) = &links.workflow {
            match self.workflows.get(&membership.id).filter(|it| it.tenant == *tenant) {
                None => return Some(Submitted::UnknownWorkflow),
                Some(it) if it.status != WorkflowStatus::Running || it.cancelled.is_some() => {
                    return Some(Submitted::WorkflowEnded);
                }
                Some(_) => {}
            }
        }
        links.dependencies.iter().find_map(|it| self.refuses_child(tenant, it.parent, 1))
    }

    fn members(&self, id: WorkflowId) -> impl Iterator<Item = &Task> {
        self.tasks.values().filter(move |task| workflow_of(task) == Some(id))
    }

    fn find_workflow(&self, tenant: &TenantName, id: WorkflowId) -> Option<&Workflow> {
        self.workflows.get(&id).filter(|it| it.tenant == *tenant)
    }

    fn workflow_state(&self, tenant: &TenantName, id: WorkflowId) -> Option<WorkflowState> {
        let workflow = self.find_workflow(tenant, id)?.clone();
        let count = |status| self.members(id).filter(|task| task.status == status).count() as u64;
        let failed = self.members(id).filter(|task| task.status == Status::Failed);
        let handled = failed.filter(|task| self.is_handled(task.id)).count() as u64;
        Some(WorkflowState { workflow, counts: Status::ALL.map(count), handled })
    }

    /// Whether a child takes care of the failure of a task.
    pub(super) fn is_handled(&self, id: TaskId) -> bool {
        let mut from = self.edges.iter().filter(|((parent, _), _)| *parent == id);
        from.any(|(_, (on, _))| on.handles_failure())
    }

    fn list_workflows(&self, page: &ListWorkflows) -> WorkflowList {
        let ListWorkflows { tenant, status, name, labels, before, limit } = page;
        let newest_first = self.workflows.values().rev();
        let own = newest_first.filter(|it| it.tenant == *tenant);
        let below = own.filter(|it| before.is_none_or(|before| it.id < before));
        let mut fitting = below.filter(|it| {
            status.is_none_or(|status| status == it.status)
                && name.as_ref().is_none_or(|name| *name == it.name)
                && labels.iter().all(|(key, value)| it.labels.get(key) == Some(value))
        });
        let workflows: Vec<_> = fitting.by_ref().take(*limit as usize).cloned().collect();
        let more = fitting.next().is_some();
        let next_before = workflows.last().map(|it| it.id).filter(|_| more);
        WorkflowList { workflows, next_before }
    }

    fn graph(&self, tenant: &TenantName, id: WorkflowId) -> Option<Graph> {
        let workflow = self.find_workflow(tenant, id)?.clone();
        let node = |task: &Task| Node {
            task: task.id,
            key: key_of(task).unwrap_or_default().to_owned(),
            task_type: task.lane.task_type.clone(),
            status: task.status,
            run: task.run,
            granted_at: task.granted_at,
            finished_at: task.finished_at,
        };
        let nodes: Vec<_> = self.members(id).map(node).collect();
        let is_member = |child: TaskId| nodes.iter().any(|node| node.task == child);
        let edges = self.edges.iter().filter(|((_, child), _)| is_member(*child));
        let edge = |(&(parent, child), (on, _)): (&_, &(_, _))| Edge { parent, child, on: *on };
        let edges = edges.map(edge).collect();
        Some(Graph { workflow, nodes, edges })
    }

    fn parents(&self, child: TaskId) -> Vec<Parent> {
        let own = self.tasks.get(&child).and_then(workflow_of);
        let mut room = PARENT_BYTES;
        let mut parents = Vec::new();
        for ((parent, _), (on, edge)) in self.edges.iter().filter(|((_, to), _)| *to == child) {
            let Some(task) = self.tasks.get(parent) else { continue };
            let error = task.error.clone().filter(|_| task.status != Status::Success);
            let size = task.result.as_ref().map_or(0, |result| result.len())
                + error.as_ref().map_or(0, |error| error.message.len());
            let fits = size <= room;
            room = if fits { room - size } else { 0 };
            let same = own.is_some() && workflow_of(task) == own;
            parents.push(Parent {
                task: *parent,
                key: key_of(task).filter(|_| same).map(str::to_owned),
                on: *on,
                edge: *edge,
                status: task.status,
                result: task.result.clone().filter(|_| fits),
                error: error.filter(|_| fits),
            });
        }
        parents
    }

    fn cancel_workflow(
        &mut self,
        tenant: &TenantName,
        id: WorkflowId,
        reason: String,
    ) -> WorkflowChange {
        if self.find_workflow(tenant, id).is_none() {
            return WorkflowChange::Unknown;
        }
        let workflow = self.workflows.get_mut(&id).expect("just found");
        match workflow.status {
            WorkflowStatus::Running => {
                workflow.cancelled.get_or_insert(reason);
                WorkflowChange::Done { tasks: 0 }
            }
            WorkflowStatus::Cancelled => WorkflowChange::Done { tasks: 0 },
            status => WorkflowChange::Conflict { status },
        }
    }

    /// The edges to a task.
    pub(super) fn edges_to(&self, child: TaskId) -> Vec<(TaskId, EdgeState)> {
        let to = self.edges.iter().filter(|((_, to), _)| *to == child);
        to.map(|((parent, _), (_, state))| (*parent, *state)).collect()
    }
}

pub(super) fn workflow_of(task: &Task) -> Option<WorkflowId> {
    task.links.as_ref()?.workflow.as_ref().map(|it| it.id)
}

fn key_of(task: &Task) -> Option<&str> {
    task.links.as_ref()?.workflow.as_ref().map(|it| it.key.as_str())
}
