//! `duly dlq list|groups`.

use duly_client::wire::{DeadLetter, ErrorGroupView};

use crate::args::{DlqGroupsArgs, DlqListArgs, Output};
use crate::commands::connect;
use crate::exit::Ending;
use crate::output;

pub(super) async fn list(args: &DlqListArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let (filter, limit) = (args.filter.text(), Some(args.limit));
    let page = client.list_dead_letters(&filter, limit, args.cursor.as_deref()).await?;
    match args.client.output {
        Output::Json => output::json(&page)?,
        Output::Table if page.partial && page.items.is_empty() => {}
        Output::Table if page.items.is_empty() => output::say("no dead letters"),
        Output::Table => output::data(&letters(&page.items))?,
        Output::Id => {
            for letter in &page.items {
                output::data(&letter.task.task_id.to_string())?;
            }
        }
    }
    if let (Some(cursor), true) = (&page.next_cursor, args.client.output != Output::Json) {
        let note =
            if page.partial { output::partial_page_note(page.scanned) } else { String::new() };
        let filter = args.filter.flag();
        output::say(&format!("{note}more: duly dlq list{filter} --cursor {cursor}"));
    }
    Ok(Ending::Ok)
}

pub(super) async fn groups(args: &DlqGroupsArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let page = client.list_error_groups(&args.filter.text(), Some(args.limit)).await?;
    match args.client.output {
        Output::Json => output::json(&page)?,
        Output::Table if page.items.is_empty() => output::say("no dead letters"),
        Output::Table => output::data(&table_of(&page.items))?,
        Output::Id => {
            for group in &page.items {
                output::data(&group.group)?;
            }
        }
    }
    if page.partial && args.client.output != Output::Json {
        let letters = output::count(page.scanned, "dead letter");
        output::say(&format!("counted the last {letters}; narrow the filter to count older ones"));
    }
    if let (Some(first), Output::Table) = (page.items.first(), args.client.output) {
        output::say(&format!("next: duly dlq replay group:{}", first.group));
    }
    Ok(Ending::Ok)
}

fn letters(letters: &[DeadLetter]) -> String {
    let header = ["id", "type", "queue", "attempt", "failed at", "group", "error"];
    let mut table = output::table(&header).shorten(&["type", "queue", "error"], 12).leave_out(&[
        "failed at",
        "attempt",
        "group",
        "queue",
    ]);
    for DeadLetter { task, error_group } in letters {
        let error = task.error.as_ref().map_or("", |error| error.message.as_str());
        table.add_row([
            task.task_id.to_string(),
            task.r#type.clone(),
            task.queue.clone(),
            format!("{}/{}", task.attempt, task.retries + 1),
            output::instant(task.finished_at),
            error_group.clone().unwrap_or_default(),
            error.to_owned(),
        ]);
    }
    output::render(&table)
}

fn table_of(groups: &[ErrorGroupView]) -> String {
    let header = ["group", "count", "type", "queue", "last failed at", "code", "error"];
    let mut table = output::table(&header)
        .shorten(&["type", "queue", "code", "error"], 12)
        .leave_out(&["last failed at", "code", "queue"]);
    for group in groups {
        table.add_row([
            group.group.clone(),
            group.count.to_string(),
            group.r#type.clone(),
            group.queue.clone(),
            group.last_failed_at.to_string(),
            group.code.clone(),
            group.pattern.clone(),
        ]);
    }
    output::render(&table)
}
