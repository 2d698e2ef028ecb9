//! `duly task list`.

use super::connect;
use crate::args::{ListArgs, Output};
use crate::exit::Ending;
use crate::output;

pub(super) async fn run(args: &ListArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let page = client.list_tasks(Some(args.limit), args.cursor.as_deref()).await?;
    match args.client.output {
        Output::Json => output::json(&page)?,
        Output::Table if page.items.is_empty() => {
            output::say("no tasks; next: duly task run echo -d '{\"hi\":1}' --wait");
        }
        Output::Table => output::data(&output::tasks(&page.items))?,
        Output::Id => {
            for task in &page.items {
                output::data(&task.task_id.to_string())?;
            }
        }
    }
    if let (Some(cursor), true) = (&page.next_cursor, args.client.output != Output::Json) {
        output::say(&format!("more: duly task list --cursor {cursor}"));
    }
    Ok(Ending::Ok)
}
