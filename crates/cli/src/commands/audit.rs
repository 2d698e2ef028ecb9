//! `duly audit`: who changed what.

use duly_client::AuditQuery;
use duly_client::wire::AuditEntryView;
use serde_json::Value;

use super::connect;
use crate::args::{AuditArgs, Output};
use crate::exit::Ending;
use crate::output;

pub(crate) fn run(args: &AuditArgs) -> anyhow::Result<Ending> {
    super::block_on(list(args))
}

async fn list(args: &AuditArgs) -> anyhow::Result<Ending> {
    let query = AuditQuery {
        actor: args.actor.clone(),
        action: args.action.clone(),
        target: args.target.clone(),
        since: args.since.clone(),
        installation: args.installation,
    };
    let client = connect(&args.client)?;
    let page = client.audit_log(&query, Some(args.limit), args.cursor.as_deref()).await?;
    match args.client.output {
        Output::Json => output::json(&page)?,
        Output::Table if page.items.is_empty() => output::say("there are no entries"),
        Output::Table => output::data(&table_of(&page.items))?,
        Output::Id => {
            for entry in &page.items {
                output::data(&entry.number.to_string())?;
            }
        }
    }
    if let Some(cursor) = page.next_cursor.filter(|_| args.client.output != Output::Json) {
        output::say(&format!("more: repeat the command with --cursor {cursor}"));
    }
    Ok(Ending::Ok)
}

fn table_of(entries: &[AuditEntryView]) -> String {
    let header = ["at", "actor", "tenant", "action", "target", "change", "request"];
    let mut table = output::table(&header)
        .shorten(&["change"], 20)
        .shorten(&["actor"], 12)
        // Ids stay whole.
        .shorten(&["target"], 36)
        .leave_out(&["request", "tenant", "change", "at"]);
    for entry in entries {
        table.add_row([
            entry.at.to_string(),
            entry.actor.clone(),
            entry.tenant.clone().unwrap_or_else(|| "-".to_owned()),
            entry.action.clone(),
            entry.target.clone(),
            change(entry),
            entry.request_id.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    output::render(&table)
}

/// `status: PENDING → CANCELLED, reason: - → why`
fn change(entry: &AuditEntryView) -> String {
    let empty = serde_json::Map::new();
    let fields = |value: &Option<Value>| match value {
        Some(Value::Object(fields)) => fields.clone(),
        _ => empty.clone(),
    };
    let (before, after) = (fields(&entry.before), fields(&entry.after));
    let mut names: Vec<_> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let text = |value: Option<&Value>| match value {
        None => "-".to_owned(),
        Some(Value::String(text)) => output::first_line(text),
        Some(value) => value.to_string(),
    };
    let one = |name: &&String| match (before.get(*name), after.get(*name)) {
        (None, after) if entry.before.is_none() => format!("{name}: {}", text(after)),
        (before, None) if entry.after.is_none() => format!("{name}: {}", text(before)),
        (before, after) => format!("{name}: {} → {}", text(before), text(after)),
    };
    names.iter().map(one).collect::<Vec<_>>().join(", ")
}
