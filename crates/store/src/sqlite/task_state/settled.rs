//! What follows from the end of tasks that are tied to others: their edges are resolved, their
//! workflows count them, and children whose every edge is satisfied are released. The hooks note such
//! tasks as they end; all that ended in one call settle together, so that a workflow is written once
//! per call and a child once for all of its parents.

use std::collections::BTreeMap;

use duly_core::event::{Event, EventKind};
use duly_core::id::{TaskId, WorkflowId};
use duly_core::name::TenantName;
use duly_core::state::Status;
use duly_core::workflow::{Condition, EdgeState, WorkflowStatus};
use rusqlite::{OptionalExtension as _, Row, params};

use super::Scope;
use super::blocked::{Blocked, Unblocked};
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
    let children = resolve_edges(scope, &ended)?;
    count_in_workflows(scope, &ended)?;
    release(scope, children)
}

/// How many edges to a child were resolved.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sqlite) struct Resolved {
    pub(in crate::sqlite) satisfied: u32,
    pub(in crate::sqlite) broken: bool,
}

/// Resolves the edges from tasks that have ended.
fn resolve_edges(scope: &Scope<'_>, ended: &[EndedLinked]) -> Result<BTreeMap<TaskId, Resolved>> {
    let mut open = scope.connection.prepare_cached(
        "/* settle.open */ SELECT child, condition FROM edge WHERE parent = ? AND state = 0",
    )?;
    let mut resolve = scope.connection.prepare_cached(
        "/* settle.resolve */ UPDATE edge
         SET state = CASE condition WHEN 0 THEN ?2 WHEN 1 THEN ?3 ELSE ?4 END
         WHERE parent = ?1 AND state = 0",
    )?;
    let mut children = BTreeMap::<TaskId, Resolved>::new();
    for parent in ended.iter().filter(|it| it.has_children) {
        let mut rows = open.query([parent.task.as_bytes()])?;
        let mut any = false;
        while let Some(row) = rows.next()? {
            let child = TaskId::from_bytes(row.get(0)?);
            let resolved = children.entry(child).or_default();
            match EdgeState::of(links::condition(row, 1, child)?, parent.status) {
                EdgeState::Satisfied => resolved.satisfied += 1,
                EdgeState::Broken => resolved.broken = true,
                EdgeState::Open => {}
            }
            any = true;
        }
        drop(rows);
        if any {
            let state = |on| encode_edge(EdgeState::of(on, parent.status));
            resolve.execute(params![
                parent.task.as_bytes(),
                state(Condition::Success),
                state(Condition::Failure),
                state(Condition::Done)
            ])?;
        }
    }
    Ok(children)
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
        let mut failed = tasks.iter().filter(|it| it.status == Status::Failed).peekable();
        let has_failed = failed.peek().is_some();
        let (open, fail_fast, cancelled, has_failed) = scope
            .connection
            .prepare_cached(
                "/* settle.count */ UPDATE workflow
                 SET open = open - ?2, has_failed = has_failed OR ?3 WHERE id = ?1
                 RETURNING open, fail_fast, cancelled IS NOT NULL, has_failed",
            )?
            .query_row(params![id.as_bytes(), tasks.len(), has_failed], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?, row.get(2)?, row.get(3)?))
            })?;
        if open == 0 {
            let unhandled = if has_failed { unhandled_failures(scope, id)? } else { 0 };
            end_workflow(scope, id, WorkflowStatus::ended(cancelled, unhandled))?;
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

fn unhandled_failures(scope: &Scope<'_>, id: WorkflowId) -> Result<u64> {
    let mut statement = scope.connection.prepare_cached(
        "/* settle.unhandled */ SELECT count(*) FROM member JOIN task ON task.id = member.task
         WHERE member.workflow = ? AND task.status = 4
           AND NOT EXISTS (SELECT 1 FROM edge WHERE parent = task.id AND condition <> 0)",
    )?;
    Ok(statement.query_row([id.as_bytes()], |row| row.get(0))?)
}

fn end_workflow(scope: &Scope<'_>, id: WorkflowId, status: WorkflowStatus) -> Result<()> {
    tell_of_end(scope, id, status)?;
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

fn tell_of_end(scope: &Scope<'_>, id: WorkflowId, status: WorkflowStatus) -> Result<()> {
    if !scope.index.sinks.want(EventKind::WorkflowEnded) {
        return Ok(());
    }
    let select = "/* settle.tenant */ SELECT tenant FROM workflow WHERE id = ?";
    let mut statement = scope.connection.prepare_cached(select)?;
    let tenant: String = statement.query_row([id.as_bytes()], |row| row.get(0))?;
    // The outcomes of its tasks must not fail because the name is damaged.
    if let Ok(tenant) = TenantName::new(&tenant) {
        scope.emit(&Event::workflow_ended(&tenant, id, status, scope.now));
    }
    Ok(())
}

/// Counts children down: the last satisfied edge releases a child, a broken one leaves it to the cascade.
fn release(scope: &mut Scope<'_>, children: BTreeMap<TaskId, Resolved>) -> Result<()> {
    let connection = scope.connection;
    let mut find = connection.prepare_cached(FIND)?;
    let mut lower = connection.prepare_cached(
        "/* settle.count_down */ UPDATE blocked SET open = open - ? WHERE lane = ? AND task = ?",
    )?;
    let mut doom = connection
        .prepare_cached("/* settle.doom */ INSERT OR IGNORE INTO doomed (task) VALUES (?)")?;
    let mut unblocked = Unblocked::prepare(connection)?;
    let mut cancelled = BTreeMap::new();
    let now = scope.now.millis();
    for (child, resolved) in children {
        let key = params![child.as_bytes(), row::encode_status(Status::Blocked)];
        let Some(found) = find.query_row(key, FoundBlocked::read).optional()? else { continue };
        if resolved.broken {
            doom.execute([child.as_bytes()])?;
            scope.cascade();
        }
        #[cfg(feature = "planted-bugs")]
        let resolved = crate::sqlite::planted::count_once(scope, resolved);
        if resolved.satisfied == 0 {
            continue;
        }
        if let Some(workflow) = found.workflow
            && !cancelled.contains_key(&workflow)
        {
            cancelled.insert(workflow, is_cancelled(scope, workflow)?);
        }
        let is_held = found.workflow.is_some_and(|workflow| cancelled[&workflow]);
        if found.open <= resolved.satisfied && !is_held {
            let run_at = match found.delay {
                Some(delay) => now.saturating_add(delay),
                None => found.run_at.max(now),
            };
            unblocked.apply(scope, Blocked { task: child, range: found.range }, run_at)?;
        } else {
            lower.execute(params![resolved.satisfied, found.range.lane, child.as_bytes()])?;
        }
    }
    Ok(())
}

/// Whether a workflow is cancelled: none of its tasks is released then.
pub(super) fn is_cancelled(scope: &Scope<'_>, workflow: [u8; 16]) -> Result<bool> {
    let mut statement = scope.connection.prepare_cached(
        "/* settle.is_cancelled */ SELECT cancelled IS NOT NULL FROM workflow WHERE id = ?",
    )?;
    Ok(statement.query_row([workflow], |row| row.get(0)).optional()?.unwrap_or(false))
}

/// A task, if it is BLOCKED.
const FIND: &str = "/* settle.find */ SELECT task.lane, task.rank, task.run_at, blocked.open,
        blocked.delay_ms, task.workflow
    FROM task JOIN blocked ON blocked.lane = task.lane AND blocked.task = task.id
    WHERE task.id = ? AND task.status = ?";

struct FoundBlocked {
    range: Range,
    run_at: i64,
    open: u32,
    delay: Option<i64>,
    workflow: Option<[u8; 16]>,
}

impl FoundBlocked {
    /// From a row of [`FIND`].
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            range: Range { lane: row.get(0)?, rank: row.get(1)? },
            run_at: row.get(2)?,
            open: row.get(3)?,
            delay: row.get(4)?,
            workflow: row.get(5)?,
        })
    }
}
