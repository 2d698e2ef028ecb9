//! Workflows over HTTP.

use std::fmt::Display;
use std::time::Duration;

use reqwest::Method;

use crate::error::Error;
use crate::http::{Client, append_page, append_wait, encode};
use crate::wire::{CancelRequest, GraphView, WorkflowAnswer, WorkflowPage, WorkflowView};

/// Which workflows to list.
#[derive(Clone, Debug, Default)]
pub struct WorkflowQuery {
    /// Only those in this state.
    pub status: Option<String>,
    /// Only those of this name.
    pub name: Option<String>,
    /// How many.
    pub limit: Option<u32>,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

impl Client {
    /// Submits a workflow, as JSON text like [`crate::wire::WorkflowRequest`]; after `Ok` all its tasks
    /// are durable.
    pub async fn submit_workflow(&self, body: String) -> Result<WorkflowAnswer, Error> {
        let url = self.url(&["v1", "workflows"]);
        self.call(Method::POST, url, Some(body.into_bytes()), Duration::ZERO).await
    }

    /// Reads a workflow; with `wait`, when it has ended or the time is over.
    pub async fn get_workflow(
        &self,
        id: impl Display,
        wait: Option<Duration>,
    ) -> Result<WorkflowView, Error> {
        let mut url = self.url(&["v1", "workflows", &id.to_string()]);
        append_wait(&mut url, wait);
        self.call(Method::GET, url, None, wait.unwrap_or_default()).await
    }

    /// Reads one page of workflows, the newest first.
    pub async fn list_workflows(&self, query: &WorkflowQuery) -> Result<WorkflowPage, Error> {
        let mut url = self.url(&["v1", "workflows"]);
        append_page(&mut url, "", query.limit, query.cursor.as_deref());
        for (name, value) in [("status", &query.status), ("name", &query.name)] {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Reads the tasks and edges of a workflow; with `collapse`, identical siblings are one node.
    pub async fn workflow_graph(
        &self,
        id: impl Display,
        collapse: bool,
    ) -> Result<GraphView, Error> {
        let mut url = self.url(&["v1", "workflows", &id.to_string(), "graph"]);
        url.query_pairs_mut().append_pair("collapse", &collapse.to_string());
        self.call(Method::GET, url, None, Duration::ZERO).await
    }

    /// Cancels a workflow.
    pub async fn cancel_workflow(
        &self,
        id: impl Display,
        order: &CancelRequest,
    ) -> Result<WorkflowView, Error> {
        let url = self.url(&["v1", "workflows", &id.to_string(), "cancel"]);
        self.call(Method::POST, url, Some(encode(order)), Duration::ZERO).await
    }

    /// Runs the failed tasks of a workflow again.
    pub async fn retry_workflow(&self, id: impl Display) -> Result<WorkflowView, Error> {
        let url = self.url(&["v1", "workflows", &id.to_string(), "retry"]);
        self.call(Method::POST, url, Some("{}".into()), Duration::ZERO).await
    }
}
