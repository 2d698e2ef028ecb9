//! Workflows and edges on PostgreSQL.

mod graph;
pub(super) mod parents;

use async_trait::async_trait;
use duly_core::id::{TaskId, WorkflowId};
use duly_core::limits::{SCAN_ROWS, WORKFLOW_TASKS};
use duly_core::name::TenantName;
use duly_core::ports::store::{
    Cascaded, Error, Graph, ListWorkflows, Parent, ReplayedDownstream, Result, SubmittedWorkflow,
    WorkflowChange, WorkflowList, WorkflowState, Workflows,
};
use duly_core::workflow::{NewWorkflow, Workflow, WorkflowStatus};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::{self, Fault};
use super::filter::Parameter;
use super::snapshot::Snapshot;
use super::verb::cancel_workflow::CancelWorkflow;
use super::verb::run_again::{ReplayDownstream, RetryWorkflow};
use super::{PostgresStore, row};

#[async_trait]
impl Workflows for PostgresStore {
    async fn submit_workflow(&self, workflow: NewWorkflow) -> Result<SubmittedWorkflow> {
        if workflow.tasks.len() > WORKFLOW_TASKS {
            return Err(Error::TooLarge { what: "a workflow", limit: WORKFLOW_TASKS });
        }
        Ok(self.store_workflow(&workflow).await?)
    }

    async fn workflow(&self, tenant: &TenantName, id: WorkflowId) -> Result<Option<WorkflowState>> {
        let mut client = self.pool.get().await?;
        let snapshot = self.pool.snapshot(&mut client, tenant).await?;
        Ok(graph::state(&snapshot, tenant, id).await?)
    }

    async fn workflows(&self, page: ListWorkflows) -> Result<WorkflowList> {
        let mut client = self.pool.get().await?;
        let snapshot = self.pool.snapshot(&mut client, &page.tenant).await?;
        Ok(list(&snapshot, &page).await?)
    }

    async fn graph(&self, tenant: &TenantName, id: WorkflowId) -> Result<Option<Graph>> {
        let mut client = self.pool.get().await?;
        let snapshot = self.pool.snapshot(&mut client, tenant).await?;
        Ok(graph::graph(&snapshot, tenant, id).await?)
    }

    async fn parents(&self, tasks: Vec<TaskId>) -> Result<Vec<Vec<Parent>>> {
        Ok(parents::parents(&self.pool, &tasks).await?)
    }

    async fn cancel_workflow(
        &self,
        tenant: &TenantName,
        id: WorkflowId,
        reason: String,
    ) -> Result<WorkflowChange> {
        Ok(self.run(&CancelWorkflow { tenant, id, reason }).await?)
    }

    async fn retry_workflow(&self, tenant: &TenantName, id: WorkflowId) -> Result<WorkflowChange> {
        Ok(self.run(&RetryWorkflow { tenant, id }).await?)
    }

    async fn replay_downstream(
        &self,
        tenant: &TenantName,
        task: TaskId,
        run: u32,
    ) -> Result<ReplayedDownstream> {
        Ok(self.run(&ReplayDownstream { tenant, task, run }).await?)
    }

    async fn cascade(&self, limit: u32) -> Result<Cascaded> {
        Ok(self.cascade_step(limit).await?)
    }
}

/// The columns that [`decode`] reads, in its order.
const COLUMNS: &str = "id, tenant, name, labels, fail_fast, status, created_at, finished_at, open, \
    cancelled";

/// Reads a row of [`COLUMNS`].
fn decode(row: &Row) -> error::Result<Workflow> {
    let id: Uuid = row.try_get(0)?;
    let damaged = |column| row::corrupt("workflow", column, id);
    let labels = row::decode_labels(row.try_get(3)?, id).map_err(|_| damaged("labels"))?;
    let open = u64::try_from(row.try_get::<_, i32>(8)?).map_err(|_| damaged("open"))?;
    Ok(Workflow {
        id: row::workflow_id(id),
        tenant: TenantName::new(row.try_get::<_, &str>(1)?).map_err(|_| damaged("tenant"))?,
        name: row.try_get(2)?,
        labels,
        fail_fast: row.try_get(4)?,
        status: decode_status(row.try_get(5)?, id)?,
        created_at: row::instant(row.try_get(6)?),
        finished_at: row.try_get::<_, Option<i64>>(7)?.map(row::instant),
        open,
        cancelled: row.try_get(9)?,
    })
}

const fn encode_status(status: WorkflowStatus) -> i16 {
    match status {
        WorkflowStatus::Running => 0,
        WorkflowStatus::Success => 1,
        WorkflowStatus::Failed => 2,
        WorkflowStatus::Cancelled => 3,
    }
}

pub(super) fn decode_status(code: i16, id: Uuid) -> error::Result<WorkflowStatus> {
    let found = WorkflowStatus::ALL.into_iter().find(|it| encode_status(*it) == code);
    found.ok_or_else(|| row::corrupt("workflow", "status", id))
}

/// The workflows of a page with the verdict on each, the newest first, and as many as one page looks at.
fn page() -> String {
    format!(
        "/* workflow.list */ SELECT {COLUMNS},
            ($3::smallint IS NULL OR status = $3) AND ($4::text IS NULL OR name = $4)
            AND ($5::text[] IS NULL OR labels IS NOT NULL AND NOT EXISTS (
                SELECT FROM unnest($5) mark WHERE strpos(labels, '{{' || mark) = 0
                    AND strpos(labels, ',' || mark) = 0))
         FROM (SELECT * FROM duly.workflow WHERE tenant = $1 AND id < $2
               ORDER BY id DESC LIMIT $6) own ORDER BY id DESC"
    )
}

/// Rows that are asked for at once.
const PORTION: u32 = 1_000;

async fn list(snapshot: &Snapshot<'_>, page: &ListWorkflows) -> error::Result<WorkflowList> {
    let ListWorkflows { tenant, status, name, labels, before, limit } = page;
    let text = |text: &str| serde_json::to_string(text).expect("a string is JSON");
    let mark = |(key, value): (&String, &String)| format!("{}:{}", text(key), text(value));
    let marks: Option<Vec<String>> =
        (!labels.is_empty()).then(|| labels.iter().map(mark).collect());
    let (tenant, status) = (tenant.as_str(), status.map(encode_status));
    let mut below = before.map_or(Uuid::max(), row::workflow_uuid);
    let (mut workflows, mut looked) = (Vec::new(), 0);
    while looked < SCAN_ROWS {
        let portion = i64::from(PORTION.min(SCAN_ROWS - looked));
        let asked: [Parameter<'_>; 6] = [&tenant, &below, &status, name, &marks, &portion];
        let rows = snapshot.query(&self::page(), &asked).await?;
        for row in &rows {
            let fits: bool = row.try_get(10)?;
            if fits && workflows.len() == *limit as usize {
                let next_before = workflows.last().map(|it: &Workflow| it.id);
                return Ok(WorkflowList { workflows, next_before });
            }
            below = row.try_get(0)?;
            looked += 1;
            match fits.then(|| decode(row)) {
                Some(Ok(workflow)) => workflows.push(workflow),
                // One damaged row must not hide the others.
                Some(Err(fault @ Fault::Corrupt { .. })) => {
                    tracing::error!(%fault, "a workflow cannot be shown");
                }
                Some(Err(fault)) => return Err(fault),
                None => {}
            }
        }
        if rows.len() < usize::try_from(portion).unwrap_or_default() {
            return Ok(WorkflowList { workflows, next_before: None });
        }
    }
    Ok(WorkflowList { workflows, next_before: Some(row::workflow_id(below)) })
}
