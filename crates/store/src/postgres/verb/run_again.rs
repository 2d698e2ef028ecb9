//! Retry a workflow, or replay a task with everything that depends on it: tasks that had ended run again,
//! and their children wait for them again.

use std::collections::{BTreeMap, BTreeSet};

use duly_core::id::{TaskId, WorkflowId};
use duly_core::name::TenantName;
use duly_core::ports::store::{ReplayedDownstream, WorkflowChange};
use duly_core::state::Status;
use duly_core::workflow::EdgeState;
use duly_core::workflow::consequences::{restartable, was_cancelled_for_others};
use foldhash::HashMap;
use uuid::Uuid;

use super::cascade::members;
use super::replay::{open_run, start_afresh};
use super::{Scope, Verb};
use crate::audited::{self, Subject};
use crate::postgres::error::{Fault, Result};
use crate::postgres::row;
use crate::postgres::task_state::changes::Changes;
use crate::postgres::task_state::linked::decode_edge_state;
use crate::postgres::task_state::state::{TaskState, each};
use crate::postgres::task_state::{blocked, linked};
use crate::postgres::workflows::decode_status;

pub(in crate::postgres) struct RetryWorkflow<'a> {
    pub(in crate::postgres) tenant: &'a TenantName,
    pub(in crate::postgres) id: WorkflowId,
}

impl Verb for RetryWorkflow<'_> {
    type Answer = WorkflowChange;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<WorkflowChange> {
        let id = row::workflow_uuid(self.id);
        let members = members(scope, id).await?;
        let mut graph = Graph::lock(scope, members).await?;
        let select = "/* workflow.hold_for_retry */ SELECT status, cancelled IS NOT NULL
            FROM duly.workflow WHERE id = $1 AND tenant = $2 FOR NO KEY UPDATE";
        let rows = scope.query(select, &[&id, &self.tenant.as_str()]).await?;
        let Some(found) = rows.first() else { return Ok(WorkflowChange::Unknown) };
        if found.try_get(1)? {
            let status = decode_status(found.try_get(0)?, id)?;
            return Ok(WorkflowChange::Conflict { status });
        }
        let update = "/* workflow.retry */ UPDATE duly.workflow SET failing = false, sweep = false
            WHERE id = $1";
        scope.execute(update, &[&id]).await?;
        let again = graph.restartable();
        graph.run_again(scope, &again, |state| state == EdgeState::Broken).await?;
        scope.counted = again.len() as u64;
        Ok(WorkflowChange::Done { tasks: again.len() as u64 })
    }

    fn audited(&self) -> Vec<Subject> {
        audited::retry_workflow(self.tenant, self.id)
    }
}

pub(in crate::postgres) struct ReplayDownstream<'a> {
    pub(in crate::postgres) tenant: &'a TenantName,
    pub(in crate::postgres) task: TaskId,
    pub(in crate::postgres) run: u32,
}

impl Verb for ReplayDownstream<'_> {
    type Answer = ReplayedDownstream;

    async fn apply(&self, scope: &mut Scope<'_>) -> Result<ReplayedDownstream> {
        let id = row::uuid(self.task);
        let again = descendants(scope, id).await?;
        let mut graph = Graph::lock(scope, again.iter().copied().collect()).await?;
        let Some(task) = graph.tasks.get(&id) else { return Ok(ReplayedDownstream::Unknown) };
        let lane = scope.store.lanes.fetch(scope.transaction(), task.lane).await?;
        if lane.tenant != *self.tenant {
            return Ok(ReplayedDownstream::Unknown);
        }
        if task.run > row::encode_count(self.run) {
            return Ok(ReplayedDownstream::Done { tasks: 0 });
        }
        // Now that the parents are locked, they get no more children.
        if descendants(scope, id).await? != again {
            return Err(Fault::Raced);
        }
        let in_the_way = |state: &&TaskState| {
            let status = state.status;
            !status.is_terminal() && (state.id == id || status != Status::Blocked)
        };
        if let Some(state) = graph.tasks.values().find(in_the_way) {
            let (task, status) = (row::task_id(state.id), state.status);
            return Ok(ReplayedDownstream::Conflict { task, status });
        }
        let again: BTreeSet<Uuid> = graph.tasks.keys().copied().collect();
        graph.run_again(scope, &again, |_| true).await?;
        Ok(ReplayedDownstream::Done { tasks: again.len() as u64 - 1 })
    }

    fn audited(&self) -> Vec<Subject> {
        audited::replay_downstream(self.tenant, self.task)
    }
}

/// A task and everything that depends on it.
async fn descendants(scope: &Scope<'_>, task: Uuid) -> Result<BTreeSet<Uuid>> {
    let select = "/* run_again.children */ SELECT child FROM duly.edge WHERE parent = ANY($1)";
    let (mut found, mut next) = (BTreeSet::from([task]), vec![task]);
    while !next.is_empty() {
        let rows = scope.query(select, &[&next]).await?;
        next.clear();
        for row in rows {
            let child = row.try_get(0)?;
            if found.insert(child) {
                next.push(child);
            }
        }
    }
    Ok(found)
}

/// Tasks that are locked, and the edges to them.
struct Graph {
    tasks: BTreeMap<Uuid, TaskState>,
    /// The parents of each task.
    edges: HashMap<Uuid, Vec<(Uuid, EdgeState)>>,
}

impl Graph {
    async fn lock(scope: &Scope<'_>, mut tasks: Vec<Uuid>) -> Result<Self> {
        tasks.sort_unstable();
        scope.query("/* run_again.keep_days */ SELECT duly.keep_days($1)", &[&tasks]).await?;
        let states = TaskState::lock(scope, &tasks).await?;
        let select = "/* run_again.edges */ SELECT parent, child, state FROM duly.edge
            WHERE child = ANY($1) ORDER BY parent";
        let mut edges = HashMap::<Uuid, Vec<_>>::default();
        for row in scope.query(select, &[&tasks]).await? {
            let child = row.try_get(1)?;
            let state = decode_edge_state(row.try_get(2)?, child)?;
            edges.entry(child).or_default().push((row.try_get(0)?, state));
        }
        Ok(Self { tasks: states.into_iter().collect(), edges })
    }

    fn edges_to(&self, task: Uuid) -> &[(Uuid, EdgeState)] {
        self.edges.get(&task).map_or(&[], Vec::as_slice)
    }

    fn is_broken(&self, task: Uuid) -> bool {
        self.edges_to(task).iter().any(|(_, state)| *state == EdgeState::Broken)
    }

    /// Tasks that failed, and those that were or will be cancelled because of that; without those that
    /// would still have a broken edge if all of them ran again.
    fn restartable(&self) -> BTreeSet<Uuid> {
        let wanted = |state: &&TaskState| match state.status {
            Status::Failed => true,
            Status::Cancelled => {
                let error = row::decode_failure("task", state.error.as_deref(), state.id);
                error.is_some_and(|it| it.is_ok_and(|error| was_cancelled_for_others(&error)))
            }
            Status::Blocked => self.is_broken(state.id),
            Status::Pending | Status::Running | Status::Success => false,
        };
        let broken_parents = |state: &TaskState| match state.status {
            Status::Failed => Vec::new(),
            _ => {
                let edges = self.edges_to(state.id).iter();
                edges.filter(|it| it.1 == EdgeState::Broken).map(|it| it.0).collect()
            }
        };
        let tasks = self.tasks.values().filter(wanted);
        restartable(tasks.map(|state| (state.id, broken_parents(state))).collect())
    }

    /// Opens the next run of those tasks that have ended. Edges between them that are in these states are
    /// open again.
    async fn run_again(
        &mut self,
        scope: &mut Scope<'_>,
        again: &BTreeSet<Uuid>,
        reopens: impl Fn(EdgeState) -> bool,
    ) -> Result<()> {
        let mut reopened = Vec::new();
        for (child, edges) in self.edges.iter_mut().filter(|(child, _)| again.contains(*child)) {
            for (parent, state) in edges.iter_mut() {
                if again.contains(parent) && *state != EdgeState::Open && reopens(*state) {
                    *state = EdgeState::Open;
                    reopened.push((*parent, *child));
                }
            }
        }
        reopened.sort_unstable();
        linked::reopen_edges(scope, &reopened).await?;
        let (mut changes, mut opened, mut blocked) = (Changes::default(), Vec::new(), Vec::new());
        let now = scope.now.millis();
        for task in again {
            let unmet = |(_, state): &&(Uuid, EdgeState)| *state != EdgeState::Satisfied;
            let open = self.edges_to(*task).iter().filter(unmet).count();
            let open = i32::try_from(open).unwrap_or(i32::MAX);
            let state = self.tasks.get_mut(task).expect("it is one of them");
            if state.status.is_terminal() {
                open_run(state, now, open, &mut changes);
                opened.push(*task);
            } else {
                blocked.push((state.clone(), open));
            }
        }
        changes.write(scope).await?;
        let blocked = each(&blocked, |(state, open)| (state, *open));
        blocked::count_edges(scope, &blocked).await?;
        let doomed: Vec<_> = again.iter().filter(|task| self.is_broken(**task)).copied().collect();
        linked::doom(scope, &doomed).await?;
        start_afresh(scope, &opened, None).await
    }
}
