//! The parents of tasks, with their results. Results are read only where they fit.

use std::sync::Arc;

use duly_core::id::TaskId;
use duly_core::limits::PARENT_BYTES;
use duly_core::ports::store::Parent;
use duly_core::state::Status;
use duly_core::task::Failure;
use duly_core::workflow::{Condition, EdgeState};
use foldhash::{HashMap, HashSet};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use crate::postgres::error::Result;
use crate::postgres::pool::Pool;
use crate::postgres::task_state::linked::{decode_condition, decode_edge_state};
use crate::postgres::{days, row};

/// An edge to a task.
struct Edge {
    parent: Uuid,
    on: Condition,
    state: EdgeState,
}

/// What is known of a task.
struct Known {
    status: Status,
    /// Bytes of its result.
    size: usize,
    /// The result itself, if it came along.
    result: Option<Arc<str>>,
    error: Option<Failure>,
    workflow: Option<Uuid>,
    key: Option<String>,
}

/// Parents of several tasks, one list per task.
struct Lists {
    /// Each parent with whether its result fits.
    lists: Vec<Vec<(Parent, bool)>>,
    /// Parents whose result fits and did not come along.
    missing: HashSet<Uuid>,
}

/// How many bytes of results come along.
pub(in crate::postgres) fn byte_limit() -> i64 {
    i64::try_from(PARENT_BYTES).unwrap_or(i64::MAX)
}

/// One list per task, in order.
pub(super) async fn parents(pool: &Pool, tasks: &[TaskId]) -> Result<Vec<Vec<Parent>>> {
    let children: Vec<_> = tasks.iter().copied().map(row::uuid).collect();
    // Results that are all small come with the rest. The others are read once it is known which fit.
    let select = "/* parents */ SELECT * FROM duly.parents($1, $2, NULL)";
    let found = pool.query(select, &[&children, &byte_limit()]).await?;
    let Lists { mut lists, missing } = lists(&found[0], &children)?;
    if !missing.is_empty() {
        let results = results(pool, &missing).await?;
        for (parent, _) in
            lists.iter_mut().flatten().filter(|(it, fits)| *fits && it.result.is_none())
        {
            parent.result = results.get(&row::uuid(parent.task)).cloned();
        }
    }
    Ok(without_fits(lists))
}

/// The parents of granted tasks, one list per task, in order. `None` if not all that belongs to them came
/// along with their leases, or if it is damaged: a call of [`parents`] then says what is wrong.
pub(in crate::postgres) fn read_along(found: &Row, tasks: &[TaskId]) -> Option<Vec<Vec<Parent>>> {
    if tasks.is_empty() || found.try_get::<_, Option<Vec<Uuid>>>("kin").ok()?.is_none() {
        return None;
    }
    let children: Vec<_> = tasks.iter().copied().map(row::uuid).collect();
    let Lists { lists, missing } = lists(found, &children).ok()?;
    missing.is_empty().then(|| without_fits(lists))
}

fn without_fits(lists: Vec<Vec<(Parent, bool)>>) -> Vec<Vec<Parent>> {
    lists.into_iter().map(|list| list.into_iter().map(|(it, _)| it).collect()).collect()
}

/// Reads the columns of `duly.parents`.
fn lists(found: &Row, children: &[Uuid]) -> Result<Lists> {
    let (edges, known) = (edges(found)?, known(found)?);
    let (mut lists, mut missing) = (Vec::with_capacity(children.len()), HashSet::default());
    for child in children {
        let own = known.get(child).and_then(|it| it.workflow);
        let list = list(edges.get(child).map_or(&[], Vec::as_slice), own, &known, &mut missing);
        lists.push(list);
    }
    Ok(Lists { lists, missing })
}

fn edges(found: &Row) -> Result<HashMap<Uuid, Vec<Edge>>> {
    let children: Vec<Uuid> = column(found, "edge_children")?;
    let parents: Vec<Uuid> = column(found, "edge_parents")?;
    let conditions: Vec<i16> = column(found, "edge_conditions")?;
    let states: Vec<i16> = column(found, "edge_states")?;
    let mut edges = HashMap::<Uuid, Vec<Edge>>::default();
    for (number, child) in children.into_iter().enumerate() {
        edges.entry(child).or_default().push(Edge {
            parent: parents[number],
            on: decode_condition(conditions[number], child)?,
            state: decode_edge_state(states[number], child)?,
        });
    }
    Ok(edges)
}

fn known(found: &Row) -> Result<HashMap<Uuid, Known>> {
    let tasks: Vec<Uuid> = column(found, "kin")?;
    let statuses: Vec<i16> = column(found, "kin_statuses")?;
    let sizes: Vec<i32> = column(found, "kin_sizes")?;
    let results: Vec<Option<&str>> = column(found, "kin_results")?;
    let errors: Vec<Option<&str>> = column(found, "kin_errors")?;
    let workflows: Vec<Option<Uuid>> = column(found, "kin_workflows")?;
    let keys: Vec<Option<&str>> = column(found, "kin_keys")?;
    let mut known = HashMap::default();
    for (number, id) in tasks.into_iter().enumerate() {
        let status = row::decode_status(statuses[number], id)?;
        let error = row::decode_failure("task", errors[number], id).transpose()?;
        let one = Known {
            status,
            size: sizes[number].unsigned_abs() as usize,
            result: results[number].map(Arc::from),
            error: error.filter(|_| status != Status::Success),
            workflow: workflows[number],
            key: keys[number].map(str::to_owned),
        };
        known.insert(id, one);
    }
    Ok(known)
}

/// A column of arrays; NULL is an array of no rows.
fn column<'a, T: FromSql<'a>>(found: &'a Row, name: &str) -> Result<Vec<T>> {
    Ok(found.try_get::<_, Option<Vec<T>>>(name)?.unwrap_or_default())
}

/// The parents of one task, each with whether its result fits. Parents whose result fits and did not come
/// along are added to `missing`.
fn list(
    edges: &[Edge],
    own: Option<Uuid>,
    known: &HashMap<Uuid, Known>,
    missing: &mut HashSet<Uuid>,
) -> Vec<(Parent, bool)> {
    let (mut room, mut parents) = (PARENT_BYTES, Vec::with_capacity(edges.len()));
    for edge in edges {
        let Some(it) = known.get(&edge.parent) else { continue };
        let size = it.size + it.error.as_ref().map_or(0, |error| error.message.len());
        let fits = size <= room;
        room = if fits { room - size } else { 0 };
        missing.extend((fits && it.size > 0 && it.result.is_none()).then_some(edge.parent));
        let parent = Parent {
            task: row::task_id(edge.parent),
            key: it.key.clone().filter(|_| own.is_some() && it.workflow == own),
            on: edge.on,
            edge: edge.state,
            status: it.status,
            result: it.result.clone().filter(|_| fits),
            error: it.error.clone().filter(|_| fits),
        };
        parents.push((parent, fits));
    }
    parents
}

async fn results(pool: &Pool, tasks: &HashSet<Uuid>) -> Result<HashMap<Uuid, Arc<str>>> {
    let select = "/* parents.results */ SELECT id, result FROM duly.task
        WHERE id = ANY($1) AND result IS NOT NULL";
    let mut results = HashMap::default();
    for part in days::apart(tasks.iter().copied()) {
        for row in pool.query(select, &[&part]).await? {
            results.insert(row.try_get(0)?, Arc::from(row.try_get::<_, &str>(1)?));
        }
    }
    Ok(results)
}
