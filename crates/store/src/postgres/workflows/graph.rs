//! One workflow: how many of its tasks are in which state, and all of them with their edges.

use duly_core::id::WorkflowId;
use duly_core::name::{TenantName, TypeName};
use duly_core::ports::store::{Edge, Graph, Node, WorkflowState};
use duly_core::state::Status;
use duly_core::workflow::Workflow;
use uuid::Uuid;

use super::{COLUMNS, decode};
use crate::postgres::error::Result;
use crate::postgres::row;
use crate::postgres::snapshot::Snapshot;
use crate::postgres::task_state::linked::decode_condition;

async fn find(snapshot: &Snapshot<'_>, tenant: &TenantName, id: Uuid) -> Result<Option<Workflow>> {
    let select = format!(
        "/* workflow.get */ SELECT {COLUMNS} FROM duly.workflow WHERE id = $1 AND tenant = $2"
    );
    let found = snapshot.query_opt(&select, &[&id, &tenant.as_str()]).await?;
    found.as_ref().map(decode).transpose()
}

/// The lowest and the highest id of a workflow's tasks: a statement on tasks looks at the days between
/// them, and at no other.
async fn bounds(snapshot: &Snapshot<'_>, id: Uuid) -> Result<Option<(Uuid, Uuid)>> {
    let select = "/* workflow.bounds */
        SELECT (SELECT task FROM duly.member WHERE workflow = $1 ORDER BY task LIMIT 1),
               (SELECT task FROM duly.member WHERE workflow = $1 ORDER BY task DESC LIMIT 1)";
    let Some(found) = snapshot.query_opt(select, &[&id]).await? else { return Ok(None) };
    let lowest: Option<Uuid> = found.try_get(0)?;
    Ok(lowest.zip(found.try_get(1)?))
}

pub(super) async fn state(
    snapshot: &Snapshot<'_>,
    tenant: &TenantName,
    id: WorkflowId,
) -> Result<Option<WorkflowState>> {
    let id = row::workflow_uuid(id);
    let Some(workflow) = find(snapshot, tenant, id).await? else { return Ok(None) };
    let mut counts = [0; Status::ALL.len()];
    let Some((lowest, highest)) = bounds(snapshot, id).await? else {
        return Ok(Some(WorkflowState { workflow, counts, handled: 0 }));
    };
    let select = "/* workflow.counts */ SELECT t.status, count(*)
        FROM duly.member m JOIN duly.task t ON t.id = m.task
        WHERE m.workflow = $1 AND t.id BETWEEN $2 AND $3 GROUP BY t.status";
    for row in snapshot.query(select, &[&id, &lowest, &highest]).await? {
        let status = row::decode_status(row.try_get(0)?, id)?;
        counts[status.index()] += row.try_get::<_, i64>(1)?.unsigned_abs();
    }
    let handled = if counts[Status::Failed.index()] > 0 { handled(snapshot, id).await? } else { 0 };
    Ok(Some(WorkflowState { workflow, counts, handled }))
}

/// How many tasks failed of which an edge takes care.
async fn handled(snapshot: &Snapshot<'_>, id: Uuid) -> Result<u64> {
    let select = "/* workflow.handled */ SELECT count(*)
        FROM duly.member m JOIN duly.dlq d ON d.task = m.task
        WHERE m.workflow = $1 AND EXISTS (
            SELECT FROM duly.edge e WHERE e.parent = m.task AND e.condition > 0)";
    let found = snapshot.query_opt(select, &[&id]).await?;
    let count: Option<i64> = found.map(|row| row.try_get(0)).transpose()?;
    Ok(count.unwrap_or_default().unsigned_abs())
}

pub(super) async fn graph(
    snapshot: &Snapshot<'_>,
    tenant: &TenantName,
    id: WorkflowId,
) -> Result<Option<Graph>> {
    let id = row::workflow_uuid(id);
    let Some(workflow) = find(snapshot, tenant, id).await? else { return Ok(None) };
    let Some((lowest, highest)) = bounds(snapshot, id).await? else {
        return Ok(Some(Graph { workflow, nodes: Vec::new(), edges: Vec::new() }));
    };
    let select = "/* workflow.nodes */ SELECT t.id, m.key, l.type, t.status, t.run, t.granted_at,
            t.finished_at
        FROM duly.member m JOIN duly.task t ON t.id = m.task JOIN duly.lane l ON l.id = t.lane
        WHERE m.workflow = $1 AND t.id BETWEEN $2 AND $3 ORDER BY t.id";
    let mut nodes = Vec::new();
    for row in snapshot.query(select, &[&id, &lowest, &highest]).await? {
        let task: Uuid = row.try_get(0)?;
        let task_type = TypeName::new(row.try_get::<_, &str>(2)?);
        nodes.push(Node {
            task: row::task_id(task),
            key: row.try_get(1)?,
            task_type: task_type.map_err(|_| row::corrupt("lane", "type", task))?,
            status: row::decode_status(row.try_get(3)?, task)?,
            run: row::count("task", "run", task, row.try_get(4)?)?,
            granted_at: row.try_get::<_, Option<i64>>(5)?.map(row::instant),
            finished_at: row.try_get::<_, Option<i64>>(6)?.map(row::instant),
        });
    }
    let edges = edges(snapshot, id).await?;
    Ok(Some(Graph { workflow, nodes, edges }))
}

/// The edges to the tasks of a workflow, by their ends.
async fn edges(snapshot: &Snapshot<'_>, id: Uuid) -> Result<Vec<Edge>> {
    let select = "/* workflow.edges */ SELECT e.parent, e.child, e.condition
        FROM duly.member m JOIN duly.edge e ON e.child = m.task WHERE m.workflow = $1";
    let mut edges = Vec::new();
    for row in snapshot.query(select, &[&id]).await? {
        let (parent, child): (Uuid, Uuid) = (row.try_get(0)?, row.try_get(1)?);
        let on = decode_condition(row.try_get(2)?, child)?;
        edges.push(Edge { parent: row::task_id(parent), child: row::task_id(child), on });
    }
    edges.sort_unstable();
    Ok(edges)
}
