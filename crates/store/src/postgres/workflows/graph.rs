//! One workflow: how many of its tasks are in which state, and all of them with their edges.

use duly_core::id::WorkflowId;
use duly_core::name::{TenantName, TypeName};
use duly_core::ports::store::{Edge, Graph, Node, WorkflowState};
use duly_core::state::Status;
use duly_core::workflow::Workflow;
use foldhash::HashMap;
use uuid::Uuid;

use super::{COLUMNS, decode};
use crate::postgres::error::Result;
use crate::postgres::snapshot::Snapshot;
use crate::postgres::task_state::linked::decode_condition;
use crate::postgres::{days, row};

async fn find(snapshot: &Snapshot<'_>, tenant: &TenantName, id: Uuid) -> Result<Option<Workflow>> {
    let select = format!(
        "/* workflow.get */ SELECT {COLUMNS} FROM duly.workflow WHERE id = $1 AND tenant = $2"
    );
    let found = snapshot.query_opt(&select, &[&id, &tenant.as_str()]).await?;
    found.as_ref().map(decode).transpose()
}

/// The tasks of a workflow and their names, by id.
async fn members(snapshot: &Snapshot<'_>, id: Uuid) -> Result<Vec<(Uuid, String)>> {
    let select = "/* workflow.keys */ SELECT task, key FROM duly.member WHERE workflow = $1
        ORDER BY task";
    let rows = snapshot.query(select, &[&id]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

pub(super) async fn state(
    snapshot: &Snapshot<'_>,
    tenant: &TenantName,
    id: WorkflowId,
) -> Result<Option<WorkflowState>> {
    let id = row::workflow_uuid(id);
    let Some(workflow) = find(snapshot, tenant, id).await? else { return Ok(None) };
    let select = "/* workflow.members */ SELECT task FROM duly.member WHERE workflow = $1";
    let rows = snapshot.query(select, &[&id]).await?;
    let members: Vec<Uuid> = rows.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<_>>()?;
    let select = "/* workflow.counts */ SELECT status, count(*) FROM duly.task
        WHERE id = ANY($1) GROUP BY status";
    let mut counts = [0; Status::ALL.len()];
    for part in days::apart(members.into_iter()) {
        for row in snapshot.query(select, &[&part]).await? {
            let status = row::decode_status(row.try_get(0)?, id)?;
            let place = Status::ALL.iter().position(|it| *it == status).unwrap_or_default();
            counts[place] += row.try_get::<_, i64>(1)?.unsigned_abs();
        }
    }
    let failed = Status::ALL.iter().position(|it| *it == Status::Failed).unwrap_or_default();
    let handled = if counts[failed] > 0 { handled(snapshot, id).await? } else { 0 };
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
    let mut keys: HashMap<Uuid, String> = members(snapshot, id).await?.into_iter().collect();
    let mut tasks: Vec<_> = keys.keys().copied().collect();
    tasks.sort_unstable();
    let select = "/* workflow.nodes */ SELECT task.id, lane.type, task.status, task.run,
            task.granted_at, task.finished_at
        FROM duly.task JOIN duly.lane ON lane.id = task.lane WHERE task.id = ANY($1)
        ORDER BY task.id";
    let mut nodes = Vec::with_capacity(tasks.len());
    for part in days::apart(tasks.iter().copied()) {
        for row in snapshot.query(select, &[&part]).await? {
            let id: Uuid = row.try_get(0)?;
            let task_type = TypeName::new(row.try_get::<_, &str>(1)?);
            nodes.push(Node {
                task: row::task_id(id),
                key: keys.remove(&id).unwrap_or_default(),
                task_type: task_type.map_err(|_| row::corrupt("lane", "type", id))?,
                status: row::decode_status(row.try_get(2)?, id)?,
                run: row::count("task", "run", id, row.try_get(3)?)?,
                granted_at: row.try_get::<_, Option<i64>>(4)?.map(row::instant),
                finished_at: row.try_get::<_, Option<i64>>(5)?.map(row::instant),
            });
        }
    }
    let edges = edges(snapshot, &tasks).await?;
    Ok(Some(Graph { workflow, nodes, edges }))
}

/// The edges to these tasks, by their ends.
async fn edges(snapshot: &Snapshot<'_>, children: &[Uuid]) -> Result<Vec<Edge>> {
    let select = "/* workflow.edges */ SELECT parent, child, condition FROM duly.edge
        WHERE child = ANY($1)";
    let mut edges = Vec::new();
    for row in snapshot.query(select, &[&children]).await? {
        let (parent, child): (Uuid, Uuid) = (row.try_get(0)?, row.try_get(1)?);
        let on = decode_condition(row.try_get(2)?, child)?;
        edges.push(Edge { parent: row::task_id(parent), child: row::task_id(child), on });
    }
    edges.sort_unstable();
    Ok(edges)
}
