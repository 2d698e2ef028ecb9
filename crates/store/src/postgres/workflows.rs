//! Workflows and edges on PostgreSQL.

use async_trait::async_trait;
use duly_core::id::{TaskId, WorkflowId};
use duly_core::name::TenantName;
use duly_core::ports::store::{
    Cascaded, Error, Graph, ListWorkflows, Parent, ReplayedDownstream, Result, SubmittedWorkflow,
    WorkflowChange, WorkflowList, WorkflowState, Workflows,
};
use duly_core::workflow::NewWorkflow;

use super::PostgresStore;

fn todo<T>() -> Result<T> {
    Err(Error::Unavailable { reason: "not supported yet".to_owned() })
}

#[async_trait]
impl Workflows for PostgresStore {
    async fn submit_workflow(&self, _: NewWorkflow) -> Result<SubmittedWorkflow> {
        todo()
    }

    async fn workflow(&self, _: &TenantName, _: WorkflowId) -> Result<Option<WorkflowState>> {
        todo()
    }

    async fn workflows(&self, _: ListWorkflows) -> Result<WorkflowList> {
        todo()
    }

    async fn graph(&self, _: &TenantName, _: WorkflowId) -> Result<Option<Graph>> {
        todo()
    }

    async fn parents(&self, _: Vec<TaskId>) -> Result<Vec<Vec<Parent>>> {
        todo()
    }

    async fn cancel_workflow(
        &self,
        _: &TenantName,
        _: WorkflowId,
        _: String,
    ) -> Result<WorkflowChange> {
        todo()
    }

    async fn retry_workflow(&self, _: &TenantName, _: WorkflowId) -> Result<WorkflowChange> {
        todo()
    }

    async fn replay_downstream(
        &self,
        _: &TenantName,
        _: TaskId,
        _: u32,
    ) -> Result<ReplayedDownstream> {
        todo()
    }

    async fn cascade(&self, _: u32) -> Result<Cascaded> {
        Ok(Cascaded::default())
    }
}
