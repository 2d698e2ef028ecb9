//! `duly task attempts`.

use duly_client::wire::AttemptView;

use crate::args::{AttemptsArgs, Output};
use crate::commands::connect;
use crate::exit::Ending;
use crate::output;

pub(super) async fn run(args: &AttemptsArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let page = client.list_attempts(args.id).await?;
    match args.client.output {
        Output::Json => output::json(&page)?,
        Output::Table if page.items.is_empty() => output::say("no attempt went wrong"),
        Output::Table => output::data(&attempts(&page.items))?,
        // An attempt has no id of its own: run and attempt name it.
        Output::Id => {
            for attempt in &page.items {
                output::data(&format!("{}.{}", attempt.run, attempt.attempt))?;
            }
        }
    }
    Ok(Ending::Ok)
}

fn attempts(attempts: &[AttemptView]) -> String {
    let mut table =
        output::table(&["run", "attempt", "epoch", "started at", "ended at", "worker", "error"]);
    for attempt in attempts {
        let error = format!("{}: {}", attempt.error.code, attempt.error.message);
        table.add_row([
            attempt.run.to_string(),
            attempt.attempt.to_string(),
            attempt.epoch.to_string(),
            attempt.started_at.to_string(),
            attempt.ended_at.to_string(),
            attempt.worker.clone().unwrap_or_else(|| "-".to_owned()),
            output::first_line(&error),
        ]);
    }
    output::trimmed(&table)
}
