//! The parents of tasks, with their results. Results are read only where they fit.

use std::sync::Arc;

use duly_core::id::TaskId;
use duly_core::limits::PARENT_BYTES;
use duly_core::ports::store::Parent;
use duly_core::state::Status;
use duly_core::task::Failure;
use duly_core::workflow::{Condition, EdgeState};
use foldhash::{HashMap, HashSet};
use uuid::Uuid;

use crate::postgres::error::Result;
use crate::postgres::snapshot::Snapshot;
use crate::postgres::task_state::linked::{decode_condition, decode_edge_state};
use crate::postgres::{days, row};

/// An edge to a task.
struct Edge {
    parent: Uuid,
    on: Condition,
    state: EdgeState,
}

/// What is known of a task without its result.
struct Known {
    status: Status,
    /// Bytes of its result.
    result: usize,
    error: Option<Failure>,
    workflow: Option<Uuid>,
    key: Option<String>,
}

/// One list per task, in order.
pub(super) async fn parents(snapshot: &Snapshot<'_>, tasks: &[TaskId]) -> Result<Vec<Vec<Parent>>> {
    let children: Vec<_> = tasks.iter().copied().map(row::uuid).collect();
    let edges = edges(snapshot, &children).await?;
    if edges.is_empty() {
        return Ok(tasks.iter().map(|_| Vec::new()).collect());
    }
    let all = edges.values().flatten().map(|edge| edge.parent);
    let wanted: HashSet<Uuid> = all.chain(children.iter().copied()).collect();
    let known = known(snapshot, wanted).await?;
    let mut lists = Vec::with_capacity(tasks.len());
    let mut fitting = HashSet::default();
    for child in &children {
        let own = known.get(child).and_then(|it| it.workflow);
        let list = list(edges.get(child).map_or(&[], Vec::as_slice), own, &known, &mut fitting);
        lists.push(list);
    }
    let results = results(snapshot, fitting).await?;
    for parent in lists.iter_mut().flatten().filter(|(_, fits)| *fits).map(|(it, _)| it) {
        parent.result = results.get(&row::uuid(parent.task)).cloned();
    }
    Ok(lists.into_iter().map(|list| list.into_iter().map(|(it, _)| it).collect()).collect())
}

async fn edges(snapshot: &Snapshot<'_>, children: &[Uuid]) -> Result<HashMap<Uuid, Vec<Edge>>> {
    let select = "/* parents.edges */ SELECT child, parent, condition, state FROM duly.edge
        WHERE child = ANY($1) ORDER BY parent";
    let mut edges = HashMap::<Uuid, Vec<Edge>>::default();
    for row in snapshot.query(select, &[&children]).await? {
        let child: Uuid = row.try_get(0)?;
        edges.entry(child).or_default().push(Edge {
            parent: row.try_get(1)?,
            on: decode_condition(row.try_get(2)?, child)?,
            state: decode_edge_state(row.try_get(3)?, child)?,
        });
    }
    Ok(edges)
}

async fn known(snapshot: &Snapshot<'_>, tasks: HashSet<Uuid>) -> Result<HashMap<Uuid, Known>> {
    let select = "/* parents.tasks */ SELECT t.id, t.status, coalesce(octet_length(t.result), 0),
            t.error, t.workflow, m.key
        FROM duly.task t LEFT JOIN duly.member m ON m.workflow = t.workflow AND m.task = t.id
        WHERE t.id = ANY($1)";
    let mut known = HashMap::default();
    for part in days::apart(tasks.into_iter()) {
        for row in snapshot.query(select, &[&part]).await? {
            let id: Uuid = row.try_get(0)?;
            let status = row::decode_status(row.try_get(1)?, id)?;
            let error = row::decode_failure("task", row.try_get(3)?, id).transpose()?;
            let one = Known {
                status,
                result: row.try_get::<_, i32>(2)?.unsigned_abs() as usize,
                error: error.filter(|_| status != Status::Success),
                workflow: row.try_get(4)?,
                key: row.try_get(5)?,
            };
            known.insert(id, one);
        }
    }
    Ok(known)
}

/// The parents of one task, each with whether its result fits; those that have one are added to `fitting`.
fn list(
    edges: &[Edge],
    own: Option<Uuid>,
    known: &HashMap<Uuid, Known>,
    fitting: &mut HashSet<Uuid>,
) -> Vec<(Parent, bool)> {
    let (mut room, mut parents) = (PARENT_BYTES, Vec::with_capacity(edges.len()));
    for edge in edges {
        let Some(it) = known.get(&edge.parent) else { continue };
        let size = it.result + it.error.as_ref().map_or(0, |error| error.message.len());
        let fits = size <= room;
        room = if fits { room - size } else { 0 };
        fitting.extend((fits && it.result > 0).then_some(edge.parent));
        let parent = Parent {
            task: row::task_id(edge.parent),
            key: it.key.clone().filter(|_| own.is_some() && it.workflow == own),
            on: edge.on,
            edge: edge.state,
            status: it.status,
            result: None,
            error: it.error.clone().filter(|_| fits),
        };
        parents.push((parent, fits));
    }
    parents
}

async fn results(snapshot: &Snapshot<'_>, tasks: HashSet<Uuid>) -> Result<HashMap<Uuid, Arc<str>>> {
    let select = "/* parents.results */ SELECT id, result FROM duly.task
        WHERE id = ANY($1) AND result IS NOT NULL";
    let mut results = HashMap::default();
    for part in days::apart(tasks.into_iter()) {
        for row in snapshot.query(select, &[&part]).await? {
            results.insert(row.try_get(0)?, Arc::from(row.try_get::<_, &str>(1)?));
        }
    }
    Ok(results)
}
