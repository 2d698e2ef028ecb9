//! `duly bulk …`: one action for many tasks.

mod show;

use duly_client::Client;
use duly_client::wire::{BulkAnswer, BulkRequest, BulkView};
use duly_core::bulk::BulkAction;

use self::show::Bar;
use super::connect;
use super::preview::Action;
use crate::args::{BulkArgs, BulkCommand, BulkIdArgs, BulkListArgs, BulkStatusArgs, Output};
use crate::exit::Ending;
use crate::output;

pub(crate) fn run(command: BulkCommand) -> anyhow::Result<Ending> {
    super::block_on(async {
        match command {
            BulkCommand::Cancel(args) => {
                let request = BulkRequest { reason: args.reason, ..request("cancel", &args.bulk) };
                start(&args.bulk, request).await
            }
            BulkCommand::Retry(args) => start(&args, request("retry", &args)).await,
            BulkCommand::Replay(args) => {
                let per_second = args.per_second;
                let request = BulkRequest { per_second, ..request("replay", &args.bulk) };
                start(&args.bulk, request).await
            }
            BulkCommand::Delete(args) => start(&args, request("delete", &args)).await,
            BulkCommand::Status(args) => status(&args).await,
            BulkCommand::Abort(args) => abort(&args).await,
            BulkCommand::List(args) => list(&args).await,
        }
    })
}

fn request(action: &str, args: &BulkArgs) -> BulkRequest {
    BulkRequest {
        action: action.to_owned(),
        filter: Some(args.filter.text()),
        all: Some(args.all),
        dry_run: Some(args.dry_run),
        ..BulkRequest::default()
    }
}

/// Describes the action of a request.
fn action_of(request: &BulkRequest) -> Action {
    let known = BulkAction::ALL.iter().find(|(word, _)| *word == request.action);
    let (verb, action) = *known.expect("every action has a name");
    Action { verb, noun: "task", is_irreversible: action == BulkAction::Delete }
}

async fn start(args: &BulkArgs, request: BulkRequest) -> anyhow::Result<Ending> {
    let (client, action) = (connect(&args.client)?, action_of(&request));
    if !args.dry_run && action.needs_confirmation(args.yes)? {
        let dry_run = BulkRequest { dry_run: Some(true), ..request.clone() };
        if let BulkAnswer::Preview(found) = client.bulk(&dry_run).await?
            && !action.confirm(&found)?
        {
            return Ok(Ending::Unsuccessful);
        }
    }
    let bulk = match client.bulk(&request).await? {
        BulkAnswer::Preview(found) => {
            action.print_preview(&found, args.client.output)?;
            return Ok(Ending::Ok);
        }
        BulkAnswer::Started(bulk) => bulk,
    };
    if args.wait {
        return follow(&client, bulk, args.client.output).await;
    }
    show::print_one(&bulk, args.client.output)?;
    output::say(&format!("next: duly bulk status {} --wait", bulk.bulk_id));
    Ok(Ending::Ok)
}

async fn status(args: &BulkStatusArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let bulk = client.get_bulk(&args.id, None).await?;
    if args.wait && !bulk.status.is_terminal() {
        return follow(&client, bulk, args.client.output).await;
    }
    show::print_one(&bulk, args.client.output)?;
    if !bulk.status.is_terminal() {
        output::say(&format!("next: duly bulk status {} --wait", bulk.bulk_id));
    }
    Ok(show::ending(&bulk))
}

/// Shows progress until the action ends. Retries while the server is away.
async fn follow(client: &Client, mut bulk: BulkView, format: Output) -> anyhow::Result<Ending> {
    let mut bar = Bar::new(&bulk);
    while !bulk.status.is_terminal() {
        bar.show(&bulk);
        bulk = match client.get_bulk(bulk.bulk_id, Some(show::REDRAW)).await {
            Ok(bulk) => bulk,
            Err(error) if !error.is_retryable() => return Err(error.into()),
            Err(error) => {
                bar.say(&format!("{error}; trying again"));
                tokio::time::sleep(show::REDRAW).await;
                continue;
            }
        };
    }
    bar.end(&bulk);
    show::print_one(&bulk, format)?;
    Ok(show::ending(&bulk))
}

async fn abort(args: &BulkIdArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let bulk = client.abort_bulk(&args.id).await?;
    show::print_one(&bulk, args.client.output)?;
    output::say("aborted; what is done stays done; next: duly bulk list");
    Ok(Ending::Ok)
}

async fn list(args: &BulkListArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let page = client.list_bulk(Some(args.limit), args.cursor.as_deref()).await?;
    match args.client.output {
        Output::Json => output::json(&page)?,
        Output::Table if page.items.is_empty() => {
            output::say("no bulk actions; next: duly bulk replay since:24h --dry-run");
        }
        Output::Table => output::data(&show::table_of(&page.items))?,
        Output::Id => {
            for bulk in &page.items {
                output::data(&bulk.bulk_id.to_string())?;
            }
        }
    }
    if let (Some(cursor), true) = (&page.next_cursor, args.client.output != Output::Json) {
        output::say(&format!("more: duly bulk list --cursor {cursor}"));
    }
    Ok(Ending::Ok)
}
