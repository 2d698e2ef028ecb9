//! `duly task list`.

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::bail;
use duly_client::Client;
use duly_client::wire::TaskPage;
use tokio::time::MissedTickBehavior;

use super::connect;
use crate::args::{ListArgs, Output};
use crate::exit::Ending;
use crate::output;
use crate::signals::Signals;

/// How often a watched list is shown anew.
const REDRAW: Duration = Duration::from_secs(2);
/// Moves to the upper left corner and clears all below.
const CLEAR: &str = "\x1b[H\x1b[2J";

pub(super) async fn run(args: &ListArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    if args.watch {
        return watch(args, &client).await;
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
    client.find_tasks(&args.filter.text(), Some(args.limit), args.cursor.as_deref()).await
}

/// Shows the first page again and again. A server that is away for a while does not end it, as
/// long as it was there at the start.
async fn watch(args: &ListArgs, client: &Client) -> anyhow::Result<Ending> {
    if args.client.output != Output::Table {
        bail!("--watch shows a table; leave `-o` out, or leave --watch out and ask again yourself");
    }
    if !std::io::stdout().is_terminal() {
        bail!("--watch needs a terminal; for a program, ask with `-o json` as often as you like");
    }
    let mut signals = Signals::new()?;
    let mut ticks = tokio::time::interval(REDRAW);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut shown = false;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = signals.next() => return Ok(Ending::Ok),
        }
        let page = tokio::select! {
            page = ask(args, client) => page,
            () = signals.next() => return Ok(Ending::Ok),
        };
        match page {
            Ok(page) => {
                let table = output::tasks(&page.items);
                output::data(&format!("{CLEAR}{table}"))?;
                output::say(&format!("\n{}every 2 s, Ctrl-C ends it", searched(&page)));
                shown = true;
            }
            Err(error) if shown => output::say(&format!("{error}; trying again")),
            Err(error) => return Err(error.into()),
        }
    }
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
