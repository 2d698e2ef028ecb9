//! `duly dlq replay|purge`.

use duly_client::wire::{PurgeDeadRequest, ReplayDeadRequest};
use serde::Serialize;

use crate::args::{DlqPurgeArgs, DlqReplayArgs, Output};
use crate::commands::connect;
use crate::exit::Ending;
use crate::output;

pub(super) async fn replay(args: &DlqReplayArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let filter = Some(args.filter.text());
    let order = ReplayDeadRequest { filter, per_second: args.per_second };
    let done = client.replay_dead_letters(&order).await?;
    print(&done, done.replayed, "replayed", args.client.output)?;
    say_more(done.more);
    Ok(Ending::Ok)
}

pub(super) async fn purge(args: &DlqPurgeArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let order = PurgeDeadRequest { filter: Some(args.filter.text()), all: Some(args.all) };
    let done = client.purge_dead_letters(&order).await?;
    print(&done, done.purged, "purged", args.client.output)?;
    say_more(done.more);
    Ok(Ending::Ok)
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
