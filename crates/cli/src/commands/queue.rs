//! `duly queue …`: inspect, pause and resume queues.

use duly_client::Client;
use duly_client::wire::{PauseRequest, QueueView};

use super::{connect, watch};
use crate::args::{Output, QueueArgs, QueueCommand, QueueListArgs, QueuePauseArgs};
use crate::exit::Ending;
use crate::output::{self, Paint};

pub(crate) fn run(command: QueueCommand) -> anyhow::Result<Ending> {
    super::block_on(async {
        match command {
            QueueCommand::List(args) => list(&args).await,
            QueueCommand::Stats(args) => stats(&args).await,
            QueueCommand::Pause(args) => pause(args).await,
            QueueCommand::Resume(args) => resume(&args).await,
        }
    })
}

async fn list(args: &QueueListArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    if args.watch {
        let fetch = async || frame(&client, args.limit).await;
        return watch::watch(args.client.output, fetch).await;
    }
    let page = client.list_queues(Some(args.limit), args.cursor.as_deref()).await?;
    match args.client.output {
        Output::Json => output::json(&page)?,
        Output::Table if page.items.is_empty() => {
            output::say("no queues; next: duly task run echo -d '{\"hi\":1}' --queue mail");
        }
        Output::Table => output::data(&table_of(&page.items))?,
        Output::Id => {
            for queue in &page.items {
                output::data(&queue.queue)?;
            }
        }
    }
    if args.client.output != Output::Json {
        if let Some(cursor) = &page.next_cursor {
            output::say(&format!("more: duly queue list --cursor {cursor}"));
        } else if let Some(first) = page.items.first() {
            output::say(&format!("next: duly queue stats {}", first.queue));
        }
    }
    Ok(Ending::Ok)
}

async fn frame(client: &Client, limit: u32) -> Result<watch::Frame, duly_client::Error> {
    let page = client.list_queues(Some(limit), None).await?;
    Ok((table_of(&page.items), String::new()))
}

async fn stats(args: &QueueArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let queue = client.queue_stats(&args.queue).await?;
    print(&queue, args.client.output)?;
    let next = match (&queue.paused, queue.dead.count > 0) {
        (Some(_), _) => format!("duly queue resume {}", queue.queue),
        (None, true) => format!("duly dlq groups queue:{}", queue.queue),
        (None, false) => format!("duly task list queue:{}", queue.queue),
    };
    output::say(&format!("next: {next}"));
    Ok(Ending::Ok)
}

async fn pause(args: QueuePauseArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let queue = client.pause_queue(&args.queue, &PauseRequest { note: args.note }).await?;
    print(&queue, args.client.output)?;
    output::say(&format!("next: duly queue resume {}", queue.queue));
    Ok(Ending::Ok)
}

async fn resume(args: &QueueArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let queue = client.resume_queue(&args.queue).await?;
    print(&queue, args.client.output)?;
    output::say(&format!("next: duly queue stats {}", queue.queue));
    Ok(Ending::Ok)
}

fn print(queue: &QueueView, format: Output) -> anyhow::Result<()> {
    match format {
        Output::Json => output::json(queue),
        Output::Table => output::data(&table_of(std::slice::from_ref(queue))),
        Output::Id => output::data(&queue.queue),
    }
}

fn table_of(queues: &[QueueView]) -> String {
    let header =
        ["queue", "waiting", "due", "running", "dead", "in/s", "started/s", "oldest due", "state"];
    let mut table = output::table(&header)
        .shorten(&["state"], 12)
        .leave_out(&["oldest due", "in/s", "started/s", "due"])
        .paint("state", Paint::HEALTH);
    for queue in queues {
        let state = match &queue.paused {
            None => "open".to_owned(),
            Some(pause) => format!("paused {}", pause.note),
        };
        table.add_row([
            queue.queue.clone(),
            queue.waiting.to_string(),
            queue.due.to_string(),
            queue.running.to_string(),
            queue.dead.to_string(),
            format!("{:.1}", queue.submitted_per_second),
            format!("{:.1}", queue.started_per_second),
            output::instant(queue.oldest_due_at),
            state,
        ]);
    }
    output::render(&table)
}
