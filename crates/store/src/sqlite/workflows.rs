//! Workflows: queries, and the port.

mod parents;

use async_trait::async_trait;
use duly_core::id::{TaskId, WorkflowId};
use duly_core::limits::{SCAN_ROWS, WORKFLOW_TASKS};
use duly_core::name::{TenantName, TypeName};
use duly_core::ports::store::{
    self, Cascaded, Graph, ListWorkflows, Node, Parent, ReplayedDownstream, SubmittedWorkflow,
    WorkflowChange, WorkflowList, WorkflowState, Workflows,
};
use duly_core::state::Status;
use duly_core::time::Timestamp;
use duly_core::workflow::{NewWorkflow, Workflow};
use rusqlite::{Connection, Row, params};

use super::error::{Fault, Result};
use super::verb::cascade::{Cascade, HAS_WORK};
use super::verb::workflow::{CancelWorkflow, ReplayDownstream, RetryWorkflow};
use super::{SqliteStore, links, row};

#[async_trait]
impl Workflows for SqliteStore {
    async fn submit_workflow(&self, workflow: NewWorkflow) -> store::Result<SubmittedWorkflow> {
        if workflow.tasks.len() > WORKFLOW_TASKS {
            return Err(store::Error::TooLarge { what: "a workflow", limit: WORKFLOW_TASKS });
        }
        self.ask(workflow).await
    }

    async fn workflow(
        &self,
        tenant: &TenantName,
        id: WorkflowId,
    ) -> store::Result<Option<WorkflowState>> {
        let tenant = tenant.clone();
        self.readers.query(move |connection| state(connection, &tenant, id)).await
    }

    async fn workflows(&self, page: ListWorkflows) -> store::Result<WorkflowList> {
        self.readers.query(move |connection| list(connection, &page)).await
    }

    async fn graph(&self, tenant: &TenantName, id: WorkflowId) -> store::Result<Option<Graph>> {
        let tenant = tenant.clone();
        self.readers.query(move |connection| graph(connection, &tenant, id)).await
    }

    async fn parents(&self, tasks: Vec<TaskId>) -> store::Result<Vec<Vec<Parent>>> {
        self.readers.query(move |connection| parents::parents(connection, &tasks)).await
    }

    async fn cancel_workflow(
        &self,
        tenant: &TenantName,
        id: WorkflowId,
        reason: String,
    ) -> store::Result<WorkflowChange> {
        self.ask(CancelWorkflow { tenant: tenant.clone(), id, reason }).await
    }

    async fn retry_workflow(
        &self,
        tenant: &TenantName,
        id: WorkflowId,
    ) -> store::Result<WorkflowChange> {
        self.ask(RetryWorkflow { tenant: tenant.clone(), id }).await
    }

    async fn replay_downstream(
        &self,
        tenant: &TenantName,
        task: TaskId,
        run: u32,
    ) -> store::Result<ReplayedDownstream> {
        self.ask(ReplayDownstream { tenant: tenant.clone(), task, run }).await
    }

    async fn cascade(&self, limit: u32) -> store::Result<Cascaded> {
        let has_work = |connection: &Connection| {
            let mut statement = connection.prepare_cached(HAS_WORK)?;
            Ok(statement.query_row([], |row| row.get::<_, bool>(0))?)
        };
        if !self.readers.query(has_work).await? {
            return Ok(Cascaded::default());
        }
        self.ask(Cascade { limit }).await
    }
}

const COLUMNS: &str =
    "id, tenant, name, labels, fail_fast, status, created_at, finished_at, open, cancelled";

fn read(found: &Row<'_>) -> Result<Workflow> {
    let id = WorkflowId::from_bytes(found.get(0)?);
    let damaged = |column| Fault::Corrupt { table: "workflow", column, id: id.to_string() };
    let tenant: String = found.get(1)?;
    let labels = match found.get::<_, Option<String>>(3)? {
        None => Default::default(),
        Some(text) => serde_json::from_str(&text).map_err(|_| damaged("labels"))?,
    };
    Ok(Workflow {
        id,
        tenant: TenantName::new(&tenant).map_err(|_| damaged("tenant"))?,
        name: found.get(2)?,
        labels,
        fail_fast: found.get(4)?,
        status: links::decode_workflow_status(found.get(5)?, id)?,
        created_at: Timestamp::clamped(found.get(6)?),
        finished_at: found.get::<_, Option<i64>>(7)?.map(Timestamp::clamped),
        open: found.get(8)?,
        cancelled: found.get(9)?,
    })
}

fn find(connection: &Connection, tenant: &TenantName, id: WorkflowId) -> Result<Option<Workflow>> {
    let text =
        format!("/* workflow.get */ SELECT {COLUMNS} FROM workflow WHERE id = ? AND tenant = ?");
    let mut statement = connection.prepare_cached(&text)?;
    let mut rows = statement.query(params![id.as_bytes(), tenant.as_str()])?;
    rows.next()?.map(read).transpose()
}

fn state(
    connection: &Connection,
    tenant: &TenantName,
    id: WorkflowId,
) -> Result<Option<WorkflowState>> {
    // Several statements that read one moment.
    let connection = &*connection.unchecked_transaction()?;
    let Some(workflow) = find(connection, tenant, id)? else { return Ok(None) };
    let mut counts = [0; Status::ALL.len()];
    let mut statement = connection.prepare_cached(
        "/* workflow.counts */ SELECT task.status, count(*) FROM member
         JOIN task ON task.id = member.task WHERE member.workflow = ? GROUP BY task.status",
    )?;
    let mut rows = statement.query([id.as_bytes()])?;
    while let Some(found) = rows.next()? {
        let status = row::decode_status(found.get(0)?, id.as_bytes())?;
        counts[status.index()] = found.get(1)?;
    }
    if counts[Status::Failed.index()] == 0 {
        return Ok(Some(WorkflowState { workflow, counts, handled: 0 }));
    }
    let mut statement = connection.prepare_cached(
        "/* workflow.handled */ SELECT count(*) FROM member JOIN task ON task.id = member.task
         WHERE member.workflow = ? AND task.status = 4
           AND EXISTS (SELECT 1 FROM edge WHERE parent = task.id AND condition <> 0)",
    )?;
    let handled = statement.query_row([id.as_bytes()], |row| row.get(0))?;
    Ok(Some(WorkflowState { workflow, counts, handled }))
}

fn list(connection: &Connection, page: &ListWorkflows) -> Result<WorkflowList> {
    let ListWorkflows { tenant, status, name, labels, before, limit } = page;
    let below = before.map_or([0xff; 16], |before| *before.as_bytes());
    let text = format!(
        "/* workflow.list */ SELECT {COLUMNS} FROM workflow INDEXED BY workflow_tenant
         WHERE tenant = ? AND id < ? ORDER BY id DESC"
    );
    let mut statement = connection.prepare_cached(&text)?;
    let mut rows = statement.query(params![tenant.as_str(), below])?;
    let mut found = WorkflowList { workflows: Vec::new(), next_before: None };
    let (mut looked, mut last) = (0, None);
    while let Some(row) = rows.next()? {
        let workflow = read(row)?;
        let id = workflow.id;
        let fits = status.is_none_or(|status| status == workflow.status)
            && name.as_ref().is_none_or(|name| *name == workflow.name)
            && labels.iter().all(|(key, value)| workflow.labels.get(key) == Some(value));
        if looked == SCAN_ROWS || (fits && found.workflows.len() == *limit as usize) {
            found.next_before = last;
            return Ok(found);
        }
        looked += 1;
        if fits {
            found.workflows.push(workflow);
        }
        last = Some(id);
    }
    Ok(found)
}

fn graph(connection: &Connection, tenant: &TenantName, id: WorkflowId) -> Result<Option<Graph>> {
    let connection = &*connection.unchecked_transaction()?;
    let Some(workflow) = find(connection, tenant, id)? else { return Ok(None) };
    let mut statement = connection.prepare_cached(
        "/* workflow.nodes */ SELECT task.id, member.key, lane.type, task.status, task.run,
                task.granted_at, task.finished_at
         FROM member JOIN task ON task.id = member.task JOIN lane ON lane.id = task.lane
         WHERE member.workflow = ? ORDER BY member.task",
    )?;
    let mut rows = statement.query([id.as_bytes()])?;
    let mut nodes = Vec::new();
    while let Some(found) = rows.next()? {
        let task: [u8; 16] = found.get(0)?;
        let instant = |column| {
            Ok::<_, rusqlite::Error>(found.get::<_, Option<i64>>(column)?.map(Timestamp::clamped))
        };
        let task_type: String = found.get(2)?;
        let damaged = |_| Fault::Corrupt { table: "lane", column: "type", id: task_type.clone() };
        nodes.push(Node {
            task: TaskId::from_bytes(task),
            key: found.get(1)?,
            task_type: TypeName::new(&task_type).map_err(damaged)?,
            status: row::decode_status(found.get(3)?, &task)?,
            run: found.get(4)?,
            granted_at: instant(5)?,
            finished_at: instant(6)?,
        });
    }
    let mut edges = links::edges_of(connection, id)?;
    edges.sort_unstable();
    Ok(Some(Graph { workflow, nodes, edges }))
}
