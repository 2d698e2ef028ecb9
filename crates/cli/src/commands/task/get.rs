//! `duly task get`.

use std::time::{Duration, Instant};

use duly_client::Client;

use super::each::{CallResults, call_each, first_failure};
use super::{connect, print_ended, report_timeout, wait};
use crate::args::{GetArgs, Output};
use crate::exit::Ending;
use crate::output;

pub(super) async fn run(args: &GetArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    if let Some(patience) = args.wait {
        return wait_for_all(args, &client, patience).await;
    }
    let done = call_each(&args.ids, async |id| client.get_task(id, None).await).await?;
    match args.client.output {
        Output::Table if !done.tasks.is_empty() => {
            let shown: Vec<_> = done.tasks.iter().map(output::task).collect();
            output::data(&shown.join("\n\n"))?;
        }
        format => done.print(format)?,
    }
    Ok(done.ending)
}

/// Waits until every task has ended, at most `patience` for all of them together.
async fn wait_for_all(
    args: &GetArgs,
    client: &Client,
    patience: Duration,
) -> anyhow::Result<Ending> {
    let start = Instant::now();
    let done = call_each(&args.ids, async |id| {
        wait(client, id, patience.saturating_sub(start.elapsed())).await
    });
    let CallResults { tasks, mut ending, .. } = done.await?;
    let mut ended = Vec::with_capacity(tasks.len());
    for task in tasks {
        if task.status.is_terminal() {
            ended.push(task);
        } else {
            ending = first_failure(ending, report_timeout(task.task_id, patience));
        }
    }
    let format = args.client.output;
    if let (Output::Json, [_, _, ..]) = (format, args.ids.as_slice()) {
        output::json(&ended)?;
    }
    for task in &ended {
        let format = if args.ids.len() > 1 && format == Output::Json { None } else { Some(format) };
        ending = first_failure(ending, print_ended(task, format)?);
    }
    Ok(ending)
}
