//! The parents of tasks, with their results as far as these fit.

use std::sync::Arc;

use duly_core::id::TaskId;
use duly_core::limits::PARENT_BYTES;
use duly_core::ports::store::Parent;
use duly_core::state::Status;
use duly_core::workflow::{Condition, EdgeState};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use crate::sqlite::error::Result;
use crate::sqlite::{links, row};

/// What a task depends on.
#[derive(Debug, Default, PartialEq)]
struct Edges {
    /// The workflow of the task, in which keys name its parents.
    workflow: Option<[u8; 16]>,
    edges: Vec<(TaskId, Condition, EdgeState)>,
}

/// One list per task, in order. Siblings mostly have the same parents, which are read once.
pub(super) fn parents(connection: &Connection, children: &[TaskId]) -> Result<Vec<Vec<Parent>>> {
    // Several statements that read one moment.
    let connection = &*connection.unchecked_transaction()?;
    let (mut lists, mut last) = (Vec::with_capacity(children.len()), Edges::default());
    for child in children {
        let edges = edges(connection, *child)?;
        let list = match lists.last() {
            Some(known) if edges == last => Vec::clone(known),
            _ => read(connection, *child, &edges)?,
        };
        lists.push(list);
        last = edges;
    }
    Ok(lists)
}

fn edges(connection: &Connection, child: TaskId) -> Result<Edges> {
    let mut statement = connection.prepare_cached(
        "/* parents.edges */ SELECT child.workflow, edge.parent, edge.condition, edge.state
         FROM task AS child JOIN edge ON edge.child = child.id
         WHERE child.id = ? ORDER BY edge.parent",
    )?;
    let mut rows = statement.query([child.as_bytes()])?;
    let mut found = Edges::default();
    while let Some(row) = rows.next()? {
        found.workflow = row.get(0)?;
        let parent = TaskId::from_bytes(row.get(1)?);
        let state = links::edge_state(row, 3, child)?;
        found.edges.push((parent, links::condition(row, 2, child)?, state));
    }
    Ok(found)
}

/// The parents that these edges lead from, in order. They are read by one statement, whose cursors stay
/// where they are from one parent to the next: parents of the same workflow mostly lie side by side.
fn read(
    connection: &Connection,
    child: TaskId,
    Edges { workflow, edges }: &Edges,
) -> Result<Vec<Parent>> {
    let mut statement = connection.prepare_cached(
        "/* parents.tasks */ SELECT task.id, task.status, task.result, task.error, member.key
         FROM edge CROSS JOIN task ON task.id = edge.parent
         LEFT JOIN member ON member.workflow = ?2 AND member.task = task.id
         WHERE edge.child = ?1 ORDER BY edge.parent",
    )?;
    let mut found = statement.query(params![child.as_bytes(), workflow])?;
    let mut edges = edges.iter();
    let (mut parents, mut room) = (Vec::with_capacity(edges.len()), PARENT_BYTES);
    while let Some(found) = found.next()? {
        let id: [u8; 16] = found.get(0)?;
        let edge = edges.find(|(parent, ..)| *parent.as_bytes() == id);
        let &(task, on, edge) = edge.expect("both statements read the same edges");
        let status = row::decode_status(found.get(1)?, &id)?;
        let result: Option<String> = found.get(2)?;
        let error = match found.get_ref(3)? {
            ValueRef::Null => None,
            _ if status == Status::Success => None,
            value => Some(row::decode_failure(value, "task", &id)?),
        };
        let size = result.as_ref().map_or(0, String::len)
            + error.as_ref().map_or(0, |error| error.message.len());
        let fits = size <= room;
        room = if fits { room - size } else { 0 };
        parents.push(Parent {
            task,
            key: found.get(4)?,
            on,
            edge,
            status,
            result: result.filter(|_| fits).map(Arc::from),
            error: error.filter(|_| fits),
        });
    }
    Ok(parents)
}
