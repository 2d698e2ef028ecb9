//! What follows from the end of tasks that are tied to others: their edges are resolved, their
//! workflows count them, and children whose every edge is satisfied are released. The hooks note such
//! tasks as they end; all that ended in one call settle together, so that a workflow is written once
//! per call and a child once for all of its parents.

use std::collections::BTreeMap;

use duly_core::id::{TaskId, WorkflowId};
use duly_core::state::Status;
use duly_core::workflow::{Condition, EdgeState, WorkflowStatus};
use rusqlite::{OptionalExtension as _, params};

use super::Scope;
use super::blocked::{Blocked, unblocked};
use crate::sqlite::error::Result;
use crate::sqlite::index::heads::Range;
use crate::sqlite::links::{self, encode_edge, encode_workflow_status};
use crate::sqlite::row;

/// A task that has ended and is tied to others.
#[derive(Clone, Copy, Debug)]
pub(in crate::sqlite) struct EndedLinked {
    pub(in crate::sqlite) task: TaskId,
    pub(in crate::sqlite) status: Status,
    pub(in crate::sqlite) has_children: bool,
    pub(in crate::sqlite) workflow: Option<WorkflowId>,
}

impl EndedLinked {
    /// From the columns `links` and `workflow`; nothing if the task is tied to nothing that cares.
    pub(in crate::sqlite) fn new(
        task: TaskId,
        status: Status,
        (links, workflow): (Option<i64>, Option<[u8; 16]>),
    ) -> Option<Self> {
        let has_children = links::children(links) > 0;
        let workflow = workflow.map(WorkflowId::from_bytes);
        (has_children || workflow.is_some()).then_some(Self {
            task,
            status,
            has_children,
            workflow,
        })
    }
}

/// Settles what has ended in this call.
pub(in crate::sqlite) fn settle(scope: &mut Scope<'_>) -> Result<()> {
    let ended = std::mem::take(&mut scope.ended);
    if ended.is_empty() {
        return Ok(());
    }
    let mut children = BTreeMap::new();
    for parent in ended.iter().filter(|it| it.has_children) {
        resolve_edges(scope, parent, &mut children)?;
    }
    count_in_workflows(scope, &ended)?;
    for (child, resolved) in children {
        if resolved.broken {
            doom(scope, child)?;
        }
        #[cfg(feature = "planted-bugs")]
        let resolved = crate::sqlite::planted::count_once(scope, resolved);
        if resolved.satisfied > 0 {
            count_down(scope, child, resolved.satisfied)?;
        }
    }
    Ok(())
}

/// How many edges to a child were resolved.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sqlite) struct Resolved {
    pub(in crate::sqlite) satisfied: u32,
    pub(in crate::sqlite) broken: bool,
}

fn resolve_edges(
    scope: &Scope<'_>,
    parent: &EndedLinked,
    children: &mut BTreeMap<TaskId, Resolved>,
) -> Result<()> {
    let mut open = scope.connection.prepare_cached(
        "/* settle.open */ SELECT child, condition FROM edge WHERE parent = ? AND state = 0",
    )?;
    let mut rows = open.query([parent.task.as_bytes()])?;
    let mut any = false;
    while let Some(row) = rows.next()? {
        let child = TaskId::from_bytes(row.get(0)?);
        let resolved: &mut Resolved = children.entry(child).or_default();
        match EdgeState::of(links::condition(row, 1, child)?, parent.status) {
            EdgeState::Satisfied => resolved.satisfied += 1,
            EdgeState::Broken => resolved.broken = true,
            EdgeState::Open => {}
        }
        any = true;
    }
    drop(rows);
    if !any {
        return Ok(());
    }
    let state = |on| encode_edge(EdgeState::of(on, parent.status));
    scope
        .connection
        .prepare_cached(
            "/* settle.resolve */ UPDATE edge
             SET state = CASE condition WHEN 0 THEN ?2 WHEN 1 THEN ?3 ELSE ?4 END
             WHERE parent = ?1 AND state = 0",
        )?
        .execute(params![
            parent.task.as_bytes(),
            state(Condition::Success),
            state(Condition::Failure),
            state(Condition::Done)
        ])?;
    Ok(())
}

/// Lowers the open counter of each workflow, once, and ends those of which nothing is open.
fn count_in_workflows(scope: &Scope<'_>, ended: &[EndedLinked]) -> Result<()> {
    let mut workflows: BTreeMap<WorkflowId, Vec<&EndedLinked>> = BTreeMap::new();
    for task in ended {
        if let Some(workflow) = task.workflow {
            workflows.entry(workflow).or_default().push(task);
        }
    }
    for (id, tasks) in workflows {
        let (open, fail_fast, cancelled) = scope
            .connection
            .prepare_cached(
                "/* settle.count */ UPDATE workflow SET open = open - ?2 WHERE id = ?1
                 RETURNING open, fail_fast, cancelled IS NOT NULL",
            )?
            .query_row(params![id.as_bytes(), tasks.len()], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?, row.get::<_, bool>(2)?))
            })?;
        let mut failed = tasks.iter().filter(|it| it.status == Status::Failed);
        if open == 0 {
            end_workflow(scope, id, cancelled)?;
        } else if fail_fast {
            let unhandled = failed.try_fold(false, |found, task| {
                Ok::<_, crate::sqlite::error::Fault>(found || !is_handled(scope, task.task)?)
            })?;
            if unhandled {
                fail_fast_now(scope, id)?;
            }
        }
    }
    Ok(())
}

fn is_handled(scope: &Scope<'_>, task: TaskId) -> Result<bool> {
    let mut statement = scope.connection.prepare_cached(
        "/* settle.is_handled */ SELECT 1 FROM edge WHERE parent = ? AND condition <> 0 LIMIT 1",
    )?;
    Ok(statement.exists([task.as_bytes()])?)
}

fn fail_fast_now(scope: &Scope<'_>, id: WorkflowId) -> Result<()> {
    let update = "/* settle.fail_fast */ UPDATE workflow SET failing = 1, sweep = 1 WHERE id = ?";
    scope.connection.prepare_cached(update)?.execute([id.as_bytes()])?;
    Ok(())
}

fn end_workflow(scope: &Scope<'_>, id: WorkflowId, cancelled: bool) -> Result<()> {
    let unhandled: u64 = scope
        .connection
        .prepare_cached(
            "/* settle.unhandled */ SELECT count(*) FROM member JOIN task ON task.id = member.task
             WHERE member.workflow = ? AND task.status = 4
               AND NOT EXISTS (SELECT 1 FROM edge WHERE parent = task.id AND condition <> 0)",
        )?
        .query_row([id.as_bytes()], |row| row.get(0))?;
    let status = WorkflowStatus::ended(cancelled, unhandled);
    scope
        .connection
        .prepare_cached(
            "/* settle.end */ UPDATE workflow SET status = ?, finished_at = ?, failing = 0,
                    sweep = NULL
             WHERE id = ?",
        )?
        .execute(params![encode_workflow_status(status), scope.now.millis(), id.as_bytes()])?;
    Ok(())
}

/// A child of which edges were satisfied: the last one releases it.
fn count_down(scope: &mut Scope<'_>, child: TaskId, satisfied: u32) -> Result<()> {
    let Some(found) = find_blocked(scope, child)? else { return Ok(()) };
    let (open, delay) = scope
        .connection
        .prepare_cached(
            "/* settle.count_down */ UPDATE blocked SET open = open - ?3 WHERE lane = ?1 AND task = ?2
             RETURNING open, delay_ms",
        )?
        .query_row(params![found.range.lane, child.as_bytes(), satisfied], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?))
        })?;
    if open > 0 || found.workflow_cancelled {
        return Ok(());
    }
    let now = scope.now.millis();
    let run_at = delay.map_or(found.run_at.max(now), |delay| now.saturating_add(delay));
    unblocked(scope, Blocked { task: child, range: found.range }, run_at)
}

/// A child with a broken edge waits for the cascade.
fn doom(scope: &mut Scope<'_>, child: TaskId) -> Result<()> {
    if find_blocked(scope, child)?.is_some() {
        let insert = "/* settle.doom */ INSERT OR IGNORE INTO doomed (task) VALUES (?)";
        scope.connection.prepare_cached(insert)?.execute([child.as_bytes()])?;
        scope.cascade();
    }
    Ok(())
}

struct FoundBlocked {
    range: Range,
    run_at: i64,
    workflow_cancelled: bool,
}

/// A task, if it is BLOCKED.
fn find_blocked(scope: &Scope<'_>, task: TaskId) -> Result<Option<FoundBlocked>> {
    let mut statement = scope.connection.prepare_cached(
        "/* settle.find */ SELECT lane, rank, run_at,
                workflow IS NOT NULL AND (SELECT cancelled IS NOT NULL FROM workflow
                    WHERE workflow.id = task.workflow)
         FROM task WHERE id = ? AND status = ?",
    )?;
    let key = params![task.as_bytes(), row::encode_status(Status::Blocked)];
    let found = statement.query_row(key, |row| {
        let range = Range { lane: row.get(0)?, rank: row.get(1)? };
        let workflow_cancelled = row.get(3)?;
        Ok(FoundBlocked { range, run_at: row.get(2)?, workflow_cancelled })
    });
    Ok(found.optional()?)
}
