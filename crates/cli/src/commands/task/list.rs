//! `duly task list`.

use duly_client::Client;
use duly_client::wire::TaskPage;

use super::connect;
use crate::args::{ListArgs, Output};
use crate::commands::watch;
use crate::exit::Ending;
use crate::output;

pub(super) async fn run(args: &ListArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    if args.watch {
        return watch::watch(args.client.output, async || frame(args, &client).await).await;
    }
    let page = fetch(args, &client).await?;
    match args.client.output {
        Output::Json => output::json(&page)?,
        Output::Table if page.items.is_empty() => {
            if let Some(why) = why_empty(args, &page) {
                output::say(&why);
            }
        }
        Output::Table => output::data(&output::tasks(&page.items))?,
        Output::Id => {
            for task in &page.items {
                output::data(&task.task_id.to_string())?;
            }
        }
    }
    if let (Some(cursor), true) = (&page.next_cursor, args.client.output != Output::Json) {
        let (note, filter) = (partial_note(&page), args.filter.flag());
        output::say(&format!("{note}more: duly task list{filter} --cursor {cursor}"));
    }
    Ok(Ending::Ok)
}

async fn fetch(args: &ListArgs, client: &Client) -> Result<TaskPage, duly_client::Error> {
    client.list_tasks(&args.filter.text(), Some(args.limit), args.cursor.as_deref()).await
}

async fn frame(args: &ListArgs, client: &Client) -> Result<watch::Frame, duly_client::Error> {
    let page = fetch(args, client).await?;
    Ok((output::tasks(&page.items), partial_note(&page)))
}

/// The message for an empty page; none if the search continues.
fn why_empty(args: &ListArgs, page: &TaskPage) -> Option<String> {
    let filtered = !args.filter.text().trim().is_empty();
    match (page.next_cursor.is_some(), filtered || args.cursor.is_some()) {
        (true, _) => None,
        (false, true) => Some("no task matches".to_owned()),
        (false, false) => {
            Some("no tasks; next: duly task run echo -d '{\"hi\":1}' --wait".to_owned())
        }
    }
}

/// Explains a short page.
fn partial_note(page: &TaskPage) -> String {
    if page.partial { output::partial_page_note(page.scanned) } else { String::new() }
}
