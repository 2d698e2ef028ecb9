//! `duly dlq replay|purge`.

use duly_client::Client;
use duly_client::wire::{BulkPreview, PurgeDeadRequest, ReplayDeadRequest};
use duly_core::id::TaskId;
use serde::Serialize;

use crate::args::{DlqActionArgs, DlqReplayArgs, Output};
use crate::commands::connect;
use crate::commands::preview::Action;
use crate::exit::{Ending, Usage};
use crate::output;

/// Groups that a dry run counts: as many as the server returns.
const GROUPS: u32 = 100;
const REPLAY: Action = Action { verb: "replay", noun: "dead letter", is_irreversible: false };
const PURGE: Action = Action { verb: "purge", noun: "dead letter", is_irreversible: true };

pub(super) async fn replay(args: &DlqReplayArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.action.client)?;
    if let Some(ending) = prepare(&client, &REPLAY, &args.action).await? {
        return Ok(ending);
    }
    let filter = Some(args.action.filter.text());
    let request = ReplayDeadRequest { filter, per_second: args.per_second };
    let done = client.replay_dead_letters(&request).await?;
    print(&done, done.replayed, "replayed", args.action.client.output)?;
    if done.more {
        say_more(done.bulk_id);
    }
    Ok(Ending::Ok)
}

pub(super) async fn purge(args: &DlqActionArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    if let Some(ending) = prepare(&client, &PURGE, args).await? {
        return Ok(ending);
    }
    let request = PurgeDeadRequest { filter: Some(args.filter.text()), all: Some(args.all) };
    let done = client.purge_dead_letters(&request).await?;
    print(&done, done.purged, "purged", args.client.output)?;
    if done.more {
        say_more(done.bulk_id);
    }
    Ok(Ending::Ok)
}

/// Requires a filter, and handles the dry run and the confirmation. Returns how the command ends if
/// it ends here.
async fn prepare(
    client: &Client,
    action: &Action,
    args: &DlqActionArgs,
) -> anyhow::Result<Option<Ending>> {
    if args.filter.is_empty() && !args.all {
        let verb = action.verb;
        return Err(Usage::new(format!(
            "no dead letters selected to {verb}: pass a filter such as type:email, or --all for every \
             dead letter; duly dlq groups lists them"
        ))
        .into());
    }
    if args.dry_run {
        action.print_preview(&count(client, args).await?, args.client.output)?;
        return Ok(Some(Ending::Ok));
    }
    if action.needs_confirmation(args.yes)? && !action.confirm(&count(client, args).await?)? {
        return Ok(Some(Ending::Unsuccessful));
    }
    Ok(None)
}

/// Counts the selected dead letters. It reads groups, since their filter has the same meaning:
/// `since:` is the time of the failure.
async fn count(client: &Client, args: &DlqActionArgs) -> anyhow::Result<BulkPreview> {
    let page = client.list_error_groups(&args.filter.text(), Some(GROUPS)).await?;
    Ok(BulkPreview {
        dry_run: true,
        count: page.items.iter().map(|group| group.count).sum(),
        more: page.partial || page.items.len() == GROUPS as usize,
        sample: page.items.iter().map(|group| group.sample_task_id).take(10).collect(),
    })
}

/// Prints the number; the server returns no ids.
fn print(answer: &impl Serialize, number: u64, done: &str, format: Output) -> anyhow::Result<()> {
    match format {
        Output::Json => output::json(answer),
        Output::Table => output::data(&format!("{done} {}", output::count(number, "dead letter"))),
        Output::Id => output::data(&number.to_string()),
    }
}

fn say_more(bulk: TaskId) {
    output::say(&format!("more may be left; next: duly bulk status {bulk} --wait"));
}
