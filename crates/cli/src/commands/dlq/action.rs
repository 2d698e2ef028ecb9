//! `duly dlq replay|purge`.

use duly_client::Client;
use duly_client::wire::{BulkPreview, PurgeDeadRequest, ReplayDeadRequest};
use serde::Serialize;

use crate::args::{DlqOrderArgs, DlqReplayArgs, Output};
use crate::commands::connect;
use crate::commands::preview::Order;
use crate::exit::{Ending, Usage};
use crate::output;

/// Groups that are counted for a trial run: as many as the server tells.
const GROUPS: u32 = 100;
const REPLAY: Order = Order { verb: "replay", noun: "dead letter", is_final: false };
const PURGE: Order = Order { verb: "purge", noun: "dead letter", is_final: true };

pub(super) async fn replay(args: &DlqReplayArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.order.client)?;
    if let Some(ending) = prepare(&client, &REPLAY, &args.order).await? {
        return Ok(ending);
    }
    let filter = Some(args.order.filter.text());
    let order = ReplayDeadRequest { filter, per_second: args.per_second };
    let done = client.replay_dead_letters(&order).await?;
    print(&done, done.replayed, "replayed", args.order.client.output)?;
    say_more(done.more);
    Ok(Ending::Ok)
}

pub(super) async fn purge(args: &DlqOrderArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    if let Some(ending) = prepare(&client, &PURGE, args).await? {
        return Ok(ending);
    }
    let order = PurgeDeadRequest { filter: Some(args.filter.text()), all: Some(args.all) };
    let done = client.purge_dead_letters(&order).await?;
    print(&done, done.purged, "purged", args.client.output)?;
    say_more(done.more);
    Ok(Ending::Ok)
}

/// What comes before an order: it must say what it is for, and a person may have to agree. Returns
/// how the command ends if it ends with that.
async fn prepare(
    client: &Client,
    order: &Order,
    args: &DlqOrderArgs,
) -> anyhow::Result<Option<Ending>> {
    if args.filter.is_empty() && !args.all {
        let verb = order.verb;
        return Err(Usage::new(format!(
            "say which dead letters to {verb}: give a filter such as type:email, or --all for every \
             one of them; duly dlq groups shows what there is"
        ))
        .into());
    }
    if args.dry_run {
        order.show(&count(client, args).await?, args.client.output)?;
        return Ok(Some(Ending::Ok));
    }
    if order.must_ask(args.yes)? && !order.ask(&count(client, args).await?)? {
        return Ok(Some(Ending::Unwell));
    }
    Ok(None)
}

/// How many dead letters are meant. Groups are asked for since their filter means what that of the
/// order means: `since:` is the time of the failure.
async fn count(client: &Client, args: &DlqOrderArgs) -> anyhow::Result<BulkPreview> {
    let page = client.list_error_groups(&args.filter.text(), Some(GROUPS)).await?;
    Ok(BulkPreview {
        dry_run: true,
        count: page.items.iter().map(|group| group.count).sum(),
        more: page.partial || page.items.len() == GROUPS as usize,
        sample: page.items.iter().map(|group| group.sample_task_id).take(10).collect(),
    })
}

/// There are no ids to print: their number stands for them.
fn print(answer: &impl Serialize, number: u64, done: &str, format: Output) -> anyhow::Result<()> {
    match format {
        Output::Json => output::json(answer),
        Output::Table => output::data(&format!("{done} {}", output::count(number, "dead letter"))),
        Output::Id => output::data(&number.to_string()),
    }
}

fn say_more(more: bool) {
    if more {
        output::say("more are left, since one order may not take all: run it again");
    }
}
