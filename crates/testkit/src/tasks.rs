//! Lists all tasks of a server.

use duly_client::Client;
use duly_client::wire::TaskView;
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
