//! The cascade: cancels tasks that can no longer start, page by page.

use std::collections::HashSet;

use duly_core::id::{SessionId, TaskId, WorkflowId};
use duly_core::ports::store::Cascaded;
use duly_core::state::{Event, Status, transition};
use duly_core::task::Failure;
use duly_core::workflow::broken_dependency;
use duly_core::workflow::consequences::{failure_handlers, swept};

use super::control::find_any;
use super::{Scope, Verb};
use crate::sqlite::error::Result;
use crate::sqlite::task_state::ended::cancelled;
use crate::sqlite::task_state::settled::settle;
use crate::sqlite::{links, row};

/// One step, which cancels so many tasks at the most.
pub(in crate::sqlite) struct Cascade {
    pub(in crate::sqlite) limit: u32,
}

/// Whether there is anything to do; asked beside the writer, so that nothing to do costs no commit.
pub(in crate::sqlite) const HAS_WORK: &str = "/* cascade.has_work */ SELECT
    EXISTS (SELECT 1 FROM doomed) OR EXISTS (SELECT 1 FROM workflow WHERE sweep = 1)";

impl Verb for Cascade {
    type Answer = Cascaded;

    fn apply(&self, scope: &mut Scope<'_>) -> Result<Cascaded> {
        let mut step = Step { left: self.limit as usize, cancelled: Vec::new() };
        if has_doomed(scope)? {
            step.cancel_doomed(scope)?;
        } else {
            step.sweep(scope)?;
        }
        settle(scope)?;
        let more = scope.connection.prepare_cached(HAS_WORK)?.query_row([], |row| row.get(0))?;
        Ok(Cascaded { cancelled: step.cancelled, more })
    }
}

fn has_doomed(scope: &Scope<'_>) -> Result<bool> {
    let mut statement = scope.connection.prepare_cached("SELECT 1 FROM doomed LIMIT 1")?;
    Ok(statement.exists([])?)
}

struct Step {
    left: usize,
    cancelled: Vec<CancelledTask>,
}

impl Step {
    fn cancel_doomed(&mut self, scope: &mut Scope<'_>) -> Result<()> {
        let doomed: Vec<TaskId> = scope
            .connection
            .prepare_cached("/* cascade.doomed */ SELECT task FROM doomed ORDER BY task LIMIT ?")?
            .query_map([self.left], |row| row.get(0).map(TaskId::from_bytes))?
            .collect::<rusqlite::Result<_>>()?;
        for task in doomed {
            if let Some(error) = broken_edge(scope, task)? {
                self.cancel(scope, task, &error)?;
            }
            let delete = "/* cascade.doomed_done */ DELETE FROM doomed WHERE task = ?";
            scope.connection.prepare_cached(delete)?.execute([task.as_bytes()])?;
        }
        Ok(())
    }

    /// Cancels open tasks of workflows that were cancelled or fail fast.
    fn sweep(&mut self, scope: &mut Scope<'_>) -> Result<()> {
        for (id, reason) in to_sweep(scope)? {
            let spared = match reason {
                Some(_) => HashSet::new(),
                None => {
                    let edges = links::edges_of(scope.connection, id)?;
                    failure_handlers(edges.into_iter().map(|it| (it.parent, it.child, it.on)))
                }
            };
            let error = swept(reason);
            for task in open_tasks(scope, id)? {
                if self.left == 0 {
                    return Ok(());
                }
                if !spared.contains(&task) {
                    self.cancel(scope, task, &error)?;
                }
            }
            let done = "/* cascade.swept */ UPDATE workflow SET sweep = NULL WHERE id = ?";
            scope.connection.prepare_cached(done)?.execute([id.as_bytes()])?;
        }
        Ok(())
    }

    fn cancel(&mut self, scope: &mut Scope<'_>, task: TaskId, error: &Failure) -> Result<()> {
        if let Some(cancelled) = cancel_open(scope, task, error)? {
            self.left = self.left.saturating_sub(1);
            self.cancelled.push(cancelled);
        }
        Ok(())
    }
}

/// A task that was cancelled, with the session that held it and the epoch of its lease.
pub(super) type CancelledTask = (TaskId, Option<(SessionId, u32)>);

/// Cancels a task unless it has ended.
pub(super) fn cancel_open(
    scope: &mut Scope<'_>,
    task: TaskId,
    error: &Failure,
) -> Result<Option<CancelledTask>> {
    let Some(found) = find_any(scope, task)? else { return Ok(None) };
    let Ok(status) = transition(found.status, Event::Cancel) else { return Ok(None) };
    let holder = match found.status {
        Status::Running => holder(scope, task)?.map(|session| (session, found.epoch)),
        _ => None,
    };
    cancelled(scope, &found, status, &row::encode_failure(error))?;
    Ok(Some((task, holder)))
}

/// Who holds a running task.
fn holder(scope: &Scope<'_>, task: TaskId) -> Result<Option<SessionId>> {
    let mut statement = scope
        .connection
        .prepare_cached("/* cascade.holder */ SELECT session FROM task WHERE id = ?")?;
    let holder: Option<[u8; 16]> = statement.query_row([task.as_bytes()], |row| row.get(0))?;
    Ok(holder.map(SessionId::from_bytes))
}

/// Why a blocked task can no longer start, if it is so.
fn broken_edge(scope: &Scope<'_>, task: TaskId) -> Result<Option<Failure>> {
    let mut statement = scope.connection.prepare_cached(
        "/* cascade.broken */ SELECT edge.parent, edge.condition, parent.status FROM edge
         JOIN task AS parent ON parent.id = edge.parent
         JOIN task AS child ON child.id = edge.child
         WHERE edge.child = ? AND edge.state = 2 AND child.status = 0
         ORDER BY edge.parent LIMIT 1",
    )?;
    let mut rows = statement.query([task.as_bytes()])?;
    let Some(found) = rows.next()? else { return Ok(None) };
    let parent: [u8; 16] = found.get(0)?;
    let status = row::decode_status(found.get(2)?, &parent)?;
    let on = links::condition(found, 1, task)?;
    Ok(Some(broken_dependency(TaskId::from_bytes(parent), on, status)))
}

/// The workflows to look at, and why each was cancelled; nothing of one that fails fast.
fn to_sweep(scope: &Scope<'_>) -> Result<Vec<(WorkflowId, Option<String>)>> {
    let mut statement = scope.connection.prepare_cached(
        "/* cascade.sweep */ SELECT id, cancelled FROM workflow WHERE sweep = 1 ORDER BY id LIMIT 100",
    )?;
    let swept =
        statement.query_map([], |row| Ok((WorkflowId::from_bytes(row.get(0)?), row.get(1)?)))?;
    Ok(swept.collect::<rusqlite::Result<_>>()?)
}

fn open_tasks(scope: &Scope<'_>, id: WorkflowId) -> Result<Vec<TaskId>> {
    let mut statement = scope.connection.prepare_cached(
        "/* cascade.open */ SELECT task.id FROM member JOIN task ON task.id = member.task
         WHERE member.workflow = ? AND task.status <= 2 ORDER BY member.task",
    )?;
    let open = statement.query_map([id.as_bytes()], |row| row.get(0).map(TaskId::from_bytes))?;
    Ok(open.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::sqlite::migrate;

    #[test]
    fn nothing_to_do_is_found_without_a_scan() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate::up(&mut connection).unwrap();
        let plan = format!("EXPLAIN QUERY PLAN {HAS_WORK}");
        let mut statement = connection.prepare(&plan).unwrap();
        let plan = statement.raw_query().mapped(|row| row.get::<_, String>("detail"));
        let plan: Vec<_> = plan.map(|detail| detail.unwrap()).collect();
        assert!(plan.iter().any(|line| line.contains("workflow_sweep")), "{plan:?}");
        assert!(!connection.query_row(HAS_WORK, [], |row| row.get::<_, bool>(0)).unwrap());
    }
}
