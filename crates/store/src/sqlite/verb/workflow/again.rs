//! Tasks that run again together: the failed ones of a workflow, or a task with all that depends on it.

use std::collections::{BTreeMap, BTreeSet};

use duly_core::id::{TaskId, WorkflowId};
use duly_core::name::TenantName;
use duly_core::ports::store::{ReplayedDownstream, WorkflowChange};
use duly_core::state::Status;
use duly_core::workflow::EdgeState;
use duly_core::workflow::consequences::{restartable, was_cancelled_for_others};
use rusqlite::params;

use super::super::control::{find, find_any};
use super::super::{Scope, Verb};
use super::standing;
use crate::audited::{self, Subject};
use crate::sqlite::error::Result;
use crate::sqlite::links::{self, encode_edge};
use crate::sqlite::row;
use crate::sqlite::task_state::replayed::{reblocked, replayed};

/// A workflow whose failed tasks are to run again.
pub(in crate::sqlite) struct RetryWorkflow {
    pub(in crate::sqlite) tenant: TenantName,
    pub(in crate::sqlite) id: WorkflowId,
}

impl Verb for RetryWorkflow {
    type Answer = WorkflowChange;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<WorkflowChange> {
        match standing(scope, &self.tenant, self.id)? {
            None => return Ok(WorkflowChange::Unknown),
            Some((status, true)) => return Ok(WorkflowChange::Conflict { status }),
            Some((_, false)) => {}
        }
        let calm = "/* workflow.calm */ UPDATE workflow SET failing = 0, sweep = NULL WHERE id = ?";
        scope.connection.prepare_cached(calm)?.execute([self.id.as_bytes()])?;
        let again = restartable(stuck(scope, self.id)?);
        for task in &again {
            run_again(scope, *task, &again, Reopens::Broken)?;
        }
        scope.counted = again.len() as u64;
        Ok(WorkflowChange::Done { tasks: again.len() as u64 })
    }

    fn audited(&self) -> Vec<Subject> {
        audited::retry_workflow(&self.tenant, self.id)
    }
}

/// The tasks of a workflow that failed, or were or are about to be cancelled because of that, each with the
/// parents that keep it from running.
fn stuck(scope: &Scope<'_>, id: WorkflowId) -> Result<BTreeMap<TaskId, Vec<TaskId>>> {
    let mut statement = scope.connection.prepare_cached(
        "/* workflow.stuck */ SELECT task.id, status, error FROM member
         JOIN task ON task.id = member.task
         WHERE member.workflow = ?1
           AND (status IN (4, 5) OR status = 0 AND EXISTS (
               SELECT 1 FROM edge WHERE edge.child = task.id AND edge.state = 2))",
    )?;
    let mut rows = statement.query([id.as_bytes()])?;
    let mut stuck = BTreeMap::new();
    while let Some(found) = rows.next()? {
        let task: [u8; 16] = found.get(0)?;
        let status = row::decode_status(found.get(1)?, &task)?;
        if status == Status::Cancelled {
            let error = row::decode_failure(found.get_ref(2)?, "task", &task)?;
            if !was_cancelled_for_others(&error) {
                continue;
            }
        }
        let task = TaskId::from_bytes(task);
        let parents = match status {
            Status::Failed => Vec::new(),
            _ => broken_parents(scope, task)?,
        };
        stuck.insert(task, parents);
    }
    Ok(stuck)
}

fn broken_parents(scope: &Scope<'_>, child: TaskId) -> Result<Vec<TaskId>> {
    let mut statement = scope.connection.prepare_cached(
        "/* edge.broken */ SELECT parent FROM edge WHERE child = ? AND state = 2 ORDER BY parent",
    )?;
    let parents =
        statement.query_map([child.as_bytes()], |row| row.get(0).map(TaskId::from_bytes))?;
    Ok(parents.collect::<rusqlite::Result<_>>()?)
}

/// Which edges from parents that run again too are open again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reopens {
    Broken,
    All,
}

/// Opens the next run of a task that has ended; it waits for the edges that are not satisfied.
fn run_again(
    scope: &mut Scope<'_>,
    task: TaskId,
    again: &BTreeSet<TaskId>,
    reopens: Reopens,
) -> Result<()> {
    let (mut open, mut reopened, mut broken) = (0, 0, false);
    for (parent, state) in edges_to(scope, task)? {
        let reset = again.contains(&parent)
            && state != EdgeState::Open
            && (reopens == Reopens::All || state == EdgeState::Broken);
        if reset {
            scope
                .connection
                .prepare_cached(
                    "/* edge.reopen */ UPDATE edge SET state = ? WHERE parent = ? AND child = ?",
                )?
                .execute(params![
                    encode_edge(EdgeState::Open),
                    parent.as_bytes(),
                    task.as_bytes()
                ])?;
            reopened += u32::from(state == EdgeState::Satisfied);
        }
        open += u32::from(reset || state != EdgeState::Satisfied);
        broken |= !reset && state == EdgeState::Broken;
    }
    let found = find_any(scope, task)?.expect("its edges are there");
    if !found.status.is_terminal() {
        // A blocked task only waits for more.
        let update =
            "/* blocked.more */ UPDATE blocked SET open = open + ? WHERE lane = ? AND task = ?";
        let values = params![reopened, found.range.lane, task.as_bytes()];
        scope.connection.prepare_cached(update)?.execute(values)?;
        let calm = "/* doomed.calm */ DELETE FROM doomed WHERE task = ?1
            AND NOT EXISTS (SELECT 1 FROM edge WHERE child = ?1 AND state = 2)";
        scope.connection.prepare_cached(calm)?.execute([task.as_bytes()])?;
        return Ok(());
    }
    if open > 0 {
        return reblocked(scope, &found, (open, broken));
    }
    let now = scope.now.millis();
    replayed(scope, &found, now)
}

fn edges_to(scope: &Scope<'_>, child: TaskId) -> Result<Vec<(TaskId, EdgeState)>> {
    let mut statement = scope
        .connection
        .prepare_cached("/* edge.states */ SELECT parent, state FROM edge WHERE child = ?")?;
    let mut rows = statement.query([child.as_bytes()])?;
    let mut edges = Vec::new();
    while let Some(row) = rows.next()? {
        edges.push((TaskId::from_bytes(row.get(0)?), links::edge_state(row, 1, child)?));
    }
    Ok(edges)
}

/// A task that is to run again with all that depends on it.
pub(in crate::sqlite) struct ReplayDownstream {
    pub(in crate::sqlite) tenant: TenantName,
    pub(in crate::sqlite) task: TaskId,
    pub(in crate::sqlite) run: u32,
}

impl Verb for ReplayDownstream {
    type Answer = ReplayedDownstream;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<ReplayedDownstream> {
        let Some(found) = find(scope, &self.tenant, self.task)? else {
            return Ok(ReplayedDownstream::Unknown);
        };
        if found.run > self.run {
            return Ok(ReplayedDownstream::Done { tasks: 0 });
        }
        let again = downstream(scope, self.task)?;
        for task in &again {
            let Some(found) = find_any(scope, *task)? else { continue };
            let waits = found.status == Status::Blocked && *task != self.task;
            if !found.status.is_terminal() && !waits {
                return Ok(ReplayedDownstream::Conflict { task: *task, status: found.status });
            }
        }
        for task in &again {
            run_again(scope, *task, &again, Reopens::All)?;
        }
        Ok(ReplayedDownstream::Done { tasks: again.len() as u64 - 1 })
    }

    fn audited(&self) -> Vec<Subject> {
        audited::replay_downstream(&self.tenant, self.task)
    }
}

/// A task and all that depends on it.
fn downstream(scope: &Scope<'_>, root: TaskId) -> Result<BTreeSet<TaskId>> {
    let mut statement = scope
        .connection
        .prepare_cached("/* edge.children */ SELECT child FROM edge WHERE parent = ?")?;
    let (mut found, mut left) = (BTreeSet::from([root]), vec![root]);
    while let Some(task) = left.pop() {
        let mut rows = statement.query([task.as_bytes()])?;
        while let Some(row) = rows.next()? {
            let child = TaskId::from_bytes(row.get(0)?);
            if found.insert(child) {
                left.push(child);
            }
        }
    }
    Ok(found)
}
