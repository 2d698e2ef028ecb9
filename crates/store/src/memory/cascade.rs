//! What follows from the end of a task in the reference model: its edges are resolved, its children
//! released, its workflow ended. And what is undone when tasks run again.

use std::collections::BTreeSet;
use std::sync::Arc;

use duly_core::id::{TaskId, WorkflowId};
use duly_core::name::TenantName;
use duly_core::ports::store::{Cascaded, ReplayedDownstream, WorkflowChange};
use duly_core::state::{Event, Status};
use duly_core::task::{Failure, Task};
use duly_core::time::Timestamp;
use duly_core::workflow::{
    Condition, DEPENDENCY_NOT_MET, EdgeState, WORKFLOW_CANCELLED, WORKFLOW_FAILED, WorkflowStatus,
    broken_dependency,
};

use super::model::Model;
use super::task_state::End;
use super::workflows::workflow_of;

impl Model {
    /// A task is stored: its edges and its part in a workflow. Whether it waits for a parent.
    pub(super) fn tie(&mut self, task: &Task) -> bool {
        let Some(links) = task.links.clone() else { return false };
        let mut blocked = false;
        for dependency in &links.dependencies {
            let parent = self.tasks[&dependency.parent].status;
            let state = EdgeState::of(dependency.on, parent);
            blocked |= state != EdgeState::Satisfied;
            self.edges.insert((dependency.parent, task.id), (dependency.on, state));
        }
        if let Some(membership) = &links.workflow {
            self.workflows.get_mut(&membership.id).expect("checked before").open += 1;
        }
        blocked
    }

    /// Tasks have ended in this call; what follows from that follows from all of them together.
    pub(super) fn settle(&mut self, now: Timestamp) {
        for id in std::mem::take(&mut self.unsettled) {
            self.settle_one(id, now);
        }
    }

    /// Resolves the edges of an ended task that are open, and counts it in its workflow.
    fn settle_one(&mut self, id: TaskId, now: Timestamp) {
        let ended = self.tasks[&id].status;
        let mut children = Vec::new();
        for ((parent, child), (on, state)) in &mut self.edges {
            if *parent == id && *state == EdgeState::Open {
                *state = EdgeState::of(*on, ended);
                children.push(*child);
            }
        }
        if let Some(workflow) = workflow_of(&self.tasks[&id]) {
            let fails = ended == Status::Failed && !self.is_handled(id);
            let open = self.workflows.get_mut(&workflow).expect("its tasks are there");
            open.open -= 1;
            if fails && open.fail_fast {
                self.failing.insert(workflow);
            }
            self.end_workflow(workflow, now);
        }
        for child in children {
            self.unblock(child, now);
        }
    }

    fn end_workflow(&mut self, id: WorkflowId, now: Timestamp) {
        if self.workflows[&id].open > 0 {
            return;
        }
        let own = |task: &&Task| workflow_of(task) == Some(id) && task.status == Status::Failed;
        let failed: Vec<_> = self.tasks.values().filter(own).map(|task| task.id).collect();
        let unhandled = failed.into_iter().filter(|task| !self.is_handled(*task)).count() as u64;
        self.workflows.get_mut(&id).expect("looked up above").end(unhandled, now);
        self.failing.remove(&id);
        self.tell_of_ended_workflow(id, now);
    }

    /// Lets a task start whose every edge is satisfied.
    fn unblock(&mut self, id: TaskId, now: Timestamp) {
        let Some(task) = self.tasks.get(&id).filter(|it| it.status == Status::Blocked) else {
            return;
        };
        let cancelled = |id| self.workflows[&id].cancelled.is_some();
        let met = |(_, state): &(_, EdgeState)| *state == EdgeState::Satisfied;
        if workflow_of(task).is_some_and(cancelled) || !self.edges_to(id).iter().all(met) {
            return;
        }
        let delay = self.delays.remove(&id).flatten();
        let run_at = delay.map_or(task.run_at.max(now), |delay| now.plus(delay));
        self.unblocked(id, run_at, now);
        self.released = Some(self.released.map_or(run_at, |earliest| earliest.min(run_at)));
    }

    /// Cancels tasks that can no longer start.
    pub(super) fn cascade(&mut self, limit: usize, now: Timestamp) -> Cascaded {
        let mut doomed = self.doomed();
        let more = doomed.len() > limit;
        doomed.truncate(limit);
        let mut cancelled = Vec::new();
        for (id, error) in doomed {
            let task = self.tasks.get_mut(&id).expect("it was just listed");
            let running = task.status == Status::Running;
            let holder = task.session.filter(|_| running).map(|session| (session, task.epoch));
            task.epoch += u32::from(running);
            self.ended(id, Event::Cancel, End { at: now, result: None, error: Some(error) });
            cancelled.push((id, holder));
        }
        self.settle(now);
        let more = more || !self.doomed().is_empty();
        Cascaded { cancelled, more }
    }

    /// The tasks that the cascade is to cancel, and why: first those with a broken edge, then the open
    /// tasks of workflows that were cancelled or fail fast.
    fn doomed(&self) -> Vec<(TaskId, Failure)> {
        let mut doomed = Vec::new();
        for task in self.tasks.values().filter(|task| task.status == Status::Blocked) {
            let broken = |((_, child), (_, state)): &(&(_, TaskId), &(_, EdgeState))| {
                *child == task.id && *state == EdgeState::Broken
            };
            if let Some(((parent, _), (on, _))) = self.edges.iter().find(broken) {
                let ended = self.tasks.get(parent).map_or(Status::Cancelled, |it| it.status);
                doomed.push((task.id, broken_dependency(*parent, *on, ended)));
            }
        }
        if !doomed.is_empty() {
            return doomed;
        }
        for workflow in self.workflows.values().filter(|it| it.status == WorkflowStatus::Running) {
            let error = match &workflow.cancelled {
                Some(reason) => Failure::new(WORKFLOW_CANCELLED, reason.clone()),
                None if self.failing.contains(&workflow.id) => {
                    Failure::new(WORKFLOW_FAILED, "another task of the workflow failed")
                }
                None => continue,
            };
            let spared = if workflow.cancelled.is_some() {
                BTreeSet::new()
            } else {
                self.handlers(workflow.id)
            };
            let own = self.tasks.values().filter(|task| workflow_of(task) == Some(workflow.id));
            let open = own.filter(|task| !task.status.is_terminal() && !spared.contains(&task.id));
            doomed.extend(open.map(|task| (task.id, error.clone())));
        }
        doomed
    }

    /// The tasks of a workflow that are reached through `failure` or `done` edges.
    fn handlers(&self, id: WorkflowId) -> BTreeSet<TaskId> {
        let own = |child: &TaskId| self.tasks.get(child).and_then(workflow_of) == Some(id);
        let mut found = BTreeSet::new();
        loop {
            let before = found.len();
            for ((parent, child), (on, _)) in &self.edges {
                if own(child) && (on.handles_failure() || found.contains(parent)) {
                    found.insert(*child);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }

    /// A task that had ended is open again, and so is its workflow.
    pub(super) fn reopen(&mut self, id: TaskId) {
        let Some(workflow) = workflow_of(&self.tasks[&id]) else { return };
        self.workflows.get_mut(&workflow).expect("its tasks are there").reopen();
    }

    pub(super) fn retry_workflow(
        &mut self,
        tenant: &TenantName,
        id: WorkflowId,
        now: Timestamp,
    ) -> WorkflowChange {
        let Some(workflow) = self.workflows.get(&id).filter(|it| it.tenant == *tenant) else {
            return WorkflowChange::Unknown;
        };
        if workflow.cancelled.is_some() {
            return WorkflowChange::Conflict { status: workflow.status };
        }
        self.failing.remove(&id);
        let own = |task: &&Task| workflow_of(task) == Some(id);
        let failed = |task: &Task| task.status == Status::Failed;
        let because = |task: &Task| {
            let code = task.error.as_ref().map(|error| error.code.as_str());
            task.status == Status::Cancelled
                && matches!(code, Some(DEPENDENCY_NOT_MET | WORKFLOW_FAILED))
        };
        let doomed = |task: &Task| {
            let broken = |(_, state): &(_, EdgeState)| *state == EdgeState::Broken;
            task.status == Status::Blocked && self.edges_to(task.id).iter().any(broken)
        };
        let wanted = self.tasks.values().filter(own);
        let wanted = wanted.filter(|it| failed(it) || because(it) || doomed(it));
        let again = self.restartable(wanted.map(|task| task.id).collect());
        for task in &again {
            self.run_again(*task, &again, |state| state == EdgeState::Broken, now);
        }
        self.counted = again.len() as u64;
        WorkflowChange::Done { tasks: self.counted }
    }

    /// Those of the tasks of which no edge stays broken if all of them run again.
    fn restartable(&self, mut again: BTreeSet<TaskId>) -> BTreeSet<TaskId> {
        loop {
            let stays_broken = |task: &TaskId| {
                self.tasks[task].status != Status::Failed
                    && self.edges_to(*task).iter().any(|(parent, state)| {
                        *state == EdgeState::Broken && !again.contains(parent)
                    })
            };
            let stuck: Vec<_> = again.iter().copied().filter(stays_broken).collect();
            if stuck.is_empty() {
                return again;
            }
            again.retain(|task| !stuck.contains(task));
        }
    }

    /// Opens the next run of a task that has ended. Of the edges from parents that run again too, those
    /// in these states are open again.
    fn run_again(
        &mut self,
        id: TaskId,
        again: &BTreeSet<TaskId>,
        reopens: impl Fn(EdgeState) -> bool,
        now: Timestamp,
    ) {
        for ((parent, child), (_, state)) in &mut self.edges {
            if *child == id && again.contains(parent) && reopens(*state) {
                *state = EdgeState::Open;
            }
        }
        if !self.tasks[&id].status.is_terminal() {
            return;
        }
        let success = self.named(&self.tasks[&id]).success();
        self.replayed(id, now, now);
        if self.edges_to(id).iter().any(|(_, state)| *state != EdgeState::Satisfied) {
            self.blocked(id);
        }
        if let Some(success) = success {
            self.keep(id, success);
        }
    }

    pub(super) fn replay_downstream(
        &mut self,
        tenant: &TenantName,
        id: TaskId,
        run: u32,
        now: Timestamp,
    ) -> ReplayedDownstream {
        let Some(task) = self.get(tenant, id) else { return ReplayedDownstream::Unknown };
        if task.run > run {
            return ReplayedDownstream::Done { tasks: 0 };
        }
        let mut again = BTreeSet::from([id]);
        loop {
            let before = again.len();
            let children = self.edges.keys().filter(|(parent, _)| again.contains(parent));
            let children: Vec<_> = children.map(|(_, child)| *child).collect();
            again.extend(children);
            if again.len() == before {
                break;
            }
        }
        let in_the_way = |task: &&TaskId| {
            let status = self.tasks[*task].status;
            !status.is_terminal() && (**task == id || status != Status::Blocked)
        };
        if let Some(task) = again.iter().find(in_the_way) {
            return ReplayedDownstream::Conflict { task: *task, status: self.tasks[task].status };
        }
        for task in &again {
            self.run_again(*task, &again, |_| true, now);
        }
        ReplayedDownstream::Done { tasks: again.len() as u64 - 1 }
    }

    /// Whether tasks that depend on this one have not ended.
    pub(super) fn has_open_children(&self, id: TaskId) -> bool {
        let children = self.edges.keys().filter(|(parent, _)| *parent == id);
        let open = |child| self.tasks.get(child).is_some_and(|it: &Task| !it.status.is_terminal());
        children.into_iter().any(|(_, child)| open(child))
    }

    /// A task is gone: its edges go, and its workflow if that has no other task.
    pub(super) fn untie(&mut self, task: &Task) {
        self.edges.retain(|(parent, child), _| *parent != task.id && *child != task.id);
        for child in self.tasks.values_mut() {
            let Some(links) = &mut child.links else { continue };
            if links.dependencies.iter().any(|it| it.parent == task.id) {
                Arc::make_mut(links).dependencies.retain(|it| it.parent != task.id);
                child.links = child.links.take().filter(|links| !links.is_empty());
            }
        }
        self.delays.remove(&task.id);
        if let Some(id) = workflow_of(task)
            && !self.tasks.values().any(|other| workflow_of(other) == Some(id))
        {
            self.workflows.remove(&id);
        }
    }
}

/// The condition and state of an edge.
pub(super) type StoredEdge = (Condition, EdgeState);
