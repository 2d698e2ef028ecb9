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
        return watch::watch(args.client.output, async || shown(args, &client).await).await;
    }
    let page = ask(args, &client).await?;
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
        let (searched, filter) = (searched(&page), args.filter.flag());
        output::say(&format!("{searched}more: duly task list{filter} --cursor {cursor}"));
    }
    Ok(Ending::Ok)
}

async fn ask(args: &ListArgs, client: &Client) -> Result<TaskPage, duly_client::Error> {
    client.list_tasks(&args.filter.text(), Some(args.limit), args.cursor.as_deref()).await
}

async fn shown(args: &ListArgs, client: &Client) -> Result<watch::Shown, duly_client::Error> {
    let page = ask(args, client).await?;
    Ok((output::tasks(&page.items), searched(&page)))
}

/// What to say where there is nothing to show; nothing if the search goes on.
fn why_empty(args: &ListArgs, page: &TaskPage) -> Option<String> {
    let filtered = !args.filter.text().trim().is_empty();
    match (page.next_cursor.is_some(), filtered || args.cursor.is_some()) {
        (true, _) => None,
        (false, true) => Some("no such tasks".to_owned()),
        (false, false) => {
            Some("no tasks; next: duly task run echo -d '{\"hi\":1}' --wait".to_owned())
        }
    }
}

/// Why a page is short although there is more to look at.
fn searched(page: &TaskPage) -> String {
    if page.partial { output::searched(page.scanned) } else { String::new() }
}
