//! Between rows and what ties tasks to each other.

use std::sync::Arc;

use duly_core::id::{TaskId, WorkflowId};
use duly_core::ports::store::Edge;
use duly_core::task::{NewTask, Task};
use duly_core::workflow::{Condition, Dependency, EdgeState, Links, Membership, WorkflowStatus};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::error::{Fault, Result};

const HAS_PARENTS: i64 = 1;
const RENDER: i64 = 2;
/// What one child adds to a parent's `links`.
pub(super) const ONE_CHILD: i64 = 4;

/// The column `links` of a new task.
pub(super) fn encode(links: &Links) -> Option<i64> {
    let parents = if links.dependencies.is_empty() { 0 } else { HAS_PARENTS };
    let render = if links.render { RENDER } else { 0 };
    Some(parents | render).filter(|bits| *bits != 0)
}

/// Whether a task with these links has or had parents.
pub(super) fn have_parents(links: Option<i64>) -> bool {
    links.is_some_and(|links| links & HAS_PARENTS != 0)
}

/// Whether the payload of a task with these links is a template.
pub(super) fn render(links: Option<i64>) -> bool {
    links.is_some_and(|links| links & RENDER != 0)
}

/// How many children a task ever had.
pub(super) fn children(links: Option<i64>) -> i64 {
    links.map_or(0, |links| links / ONE_CHILD)
}

/// What the task's own row says: its dependencies and its key are in other tables, see [`fill`].
pub(super) fn from_row(links: Option<i64>, workflow: Option<[u8; 16]>) -> Option<Arc<Links>> {
    let workflow =
        workflow.map(|id| Membership { id: WorkflowId::from_bytes(id), key: String::new() });
    let render = render(links);
    let is_linked = have_parents(links) || render || workflow.is_some();
    is_linked.then(|| Arc::new(Links { dependencies: Vec::new(), workflow, render }))
}

/// Reads the dependencies and the key of a task that is tied to others.
pub(super) fn fill(connection: &Connection, task: &mut Task) -> Result<()> {
    let Some(links) = task.links.as_mut().map(Arc::make_mut) else { return Ok(()) };
    links.dependencies = dependencies(connection, task.id)?;
    if let Some(membership) = &mut links.workflow {
        membership.key = key(connection, membership.id, task.id)?.unwrap_or_default();
    }
    if links.is_empty() {
        // Its parents were deleted.
        task.links = None;
    }
    Ok(())
}

fn dependencies(connection: &Connection, child: TaskId) -> Result<Vec<Dependency>> {
    let mut statement = connection.prepare_cached(
        "/* edge.to */ SELECT parent, condition FROM edge WHERE child = ? ORDER BY parent",
    )?;
    let mut rows = statement.query([child.as_bytes()])?;
    let mut dependencies = Vec::new();
    while let Some(row) = rows.next()? {
        let parent = TaskId::from_bytes(row.get(0)?);
        dependencies.push(Dependency { parent, on: condition(row, 1, child)? });
    }
    Ok(dependencies)
}

/// The edges to the tasks of a workflow.
pub(super) fn edges_of(connection: &Connection, workflow: WorkflowId) -> Result<Vec<Edge>> {
    let mut statement = connection.prepare_cached(
        "/* workflow.edges */ SELECT edge.parent, edge.child, edge.condition FROM member
         JOIN edge ON edge.child = member.task WHERE member.workflow = ?",
    )?;
    let mut rows = statement.query([workflow.as_bytes()])?;
    let mut edges = Vec::new();
    while let Some(row) = rows.next()? {
        let child = TaskId::from_bytes(row.get(1)?);
        let (parent, on) = (TaskId::from_bytes(row.get(0)?), condition(row, 2, child)?);
        edges.push(Edge { parent, child, on });
    }
    Ok(edges)
}

/// The name of a task in a workflow.
pub(super) fn key(
    connection: &Connection,
    workflow: WorkflowId,
    task: TaskId,
) -> Result<Option<String>> {
    let mut statement = connection.prepare_cached(
        "/* member.key */ SELECT key FROM member WHERE workflow = ? AND task = ?",
    )?;
    let key = params![workflow.as_bytes(), task.as_bytes()];
    Ok(statement.query_row(key, |row| row.get(0)).optional()?)
}

/// The workflow of a new task.
pub(super) fn workflow_of(task: &NewTask) -> Option<&Membership> {
    task.links.as_ref()?.workflow.as_ref()
}

pub(super) const fn encode_condition(on: Condition) -> i64 {
    match on {
        Condition::Success => 0,
        Condition::Failure => 1,
        Condition::Done => 2,
    }
}

/// Reads the condition of an edge.
pub(super) fn condition(row: &Row<'_>, column: usize, child: TaskId) -> Result<Condition> {
    let code: i64 = row.get(column)?;
    let found = Condition::ALL.into_iter().find(|on| encode_condition(*on) == code);
    found.ok_or_else(|| corrupt_edge("condition", child))
}

pub(super) const fn encode_edge(state: EdgeState) -> i64 {
    match state {
        EdgeState::Open => 0,
        EdgeState::Satisfied => 1,
        EdgeState::Broken => 2,
    }
}

/// Reads the state of an edge.
pub(super) fn edge_state(row: &Row<'_>, column: usize, child: TaskId) -> Result<EdgeState> {
    match row.get::<_, i64>(column)? {
        0 => Ok(EdgeState::Open),
        1 => Ok(EdgeState::Satisfied),
        2 => Ok(EdgeState::Broken),
        _ => Err(corrupt_edge("state", child)),
    }
}

fn corrupt_edge(column: &'static str, child: TaskId) -> Fault {
    Fault::Corrupt { table: "edge", column, id: child.to_string() }
}

pub(super) const fn encode_workflow_status(status: WorkflowStatus) -> i64 {
    match status {
        WorkflowStatus::Running => 0,
        WorkflowStatus::Success => 1,
        WorkflowStatus::Failed => 2,
        WorkflowStatus::Cancelled => 3,
    }
}

pub(super) fn decode_workflow_status(code: i64, id: WorkflowId) -> Result<WorkflowStatus> {
    let mut all = WorkflowStatus::ALL.into_iter();
    all.find(|status| encode_workflow_status(*status) == code).ok_or_else(|| Fault::Corrupt {
        table: "workflow",
        column: "status",
        id: id.to_string(),
    })
}
