//! Lists all tasks and workflows of a server.

use duly_client::wire::{TaskView, WorkflowSummary};
use duly_client::{Client, WorkflowQuery};
use duly_core::limits::PAGE;

/// Every task of a server, page by page.
pub async fn all_tasks(client: &Client) -> anyhow::Result<Vec<TaskView>> {
    let (mut tasks, mut cursor) = (Vec::new(), None);
    loop {
        let page = client.list_tasks("", Some(PAGE), cursor.as_deref()).await?;
        tasks.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tasks);
        }
    }
}

/// Every workflow of a server, page by page.
pub async fn all_workflows(client: &Client) -> anyhow::Result<Vec<WorkflowSummary>> {
    let mut query = WorkflowQuery { limit: Some(PAGE), ..WorkflowQuery::default() };
    let mut workflows = Vec::new();
    loop {
        let page = client.list_workflows(&query).await?;
        workflows.extend(page.items);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return Ok(workflows);
        }
    }
}
