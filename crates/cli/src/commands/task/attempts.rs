//! `duly task attempts`.

use duly_client::wire::AttemptView;
use duly_core::state::Status;

use crate::args::{AttemptsArgs, Output};
use crate::commands::connect;
use crate::exit::Ending;
use crate::output::{self, Paint};

pub(super) async fn run(args: &AttemptsArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let page = client.list_attempts(&args.id).await?;
    match args.client.output {
        Output::Json => output::json(&page)?,
        Output::Table if page.items.is_empty() => output::say("no attempt has ended yet"),
        Output::Table => output::data(&attempts(&page.items))?,
        // An attempt has no id: run and attempt identify it.
        Output::Id => {
            for attempt in &page.items {
                output::data(&format!("{}.{}", attempt.run, attempt.attempt))?;
            }
        }
    }
    Ok(Ending::Ok)
}

fn attempts(attempts: &[AttemptView]) -> String {
    let header =
        ["run", "attempt", "status", "started at", "took", "ended at", "epoch", "worker", "error"];
    let mut table = output::table(&header)
        .shorten(&["worker"], 12)
        .shorten(&["error"], 20)
        .leave_out(&["ended at", "epoch", "worker"])
        .paint("status", Paint::STATUS);
    for attempt in attempts {
        // A lost attempt has an error, too: its code says that the worker was lost.
        let status = if attempt.error.is_none() { Status::Success } else { Status::Failed };
        let took = attempt.ended_at.since(attempt.started_at);
        table.add_row([
            attempt.run.to_string(),
            attempt.attempt.to_string(),
            status.to_string(),
            attempt.started_at.to_string(),
            format!("{:.3} s", took.as_secs_f64()),
            attempt.ended_at.to_string(),
            attempt.epoch.to_string(),
            attempt.worker.clone().unwrap_or_else(|| "-".to_owned()),
            attempt.error.as_ref().map_or_else(String::new, output::failure),
        ]);
    }
    output::render(&table)
}
