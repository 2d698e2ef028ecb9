//! `duly task explain`.

use duly_client::wire::ScheduleSlot;

use super::connect;
use crate::args::{ExplainArgs, Output};
use crate::exit::Ending;
use crate::output;

pub(super) async fn run(args: &ExplainArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let explained = client.explain_task(&args.id).await?;
    match args.client.output {
        Output::Json => output::json(&explained)?,
        Output::Id => output::data(&explained.task_id.to_string())?,
        Output::Table => {
            let reasons = explained.reasons.iter().map(|reason| reason.detail.as_str());
            let lines: Vec<_> = reasons.collect();
            output::data(&format!("{}: {}", explained.status, lines.join("; ")))?;
            if let Some(ScheduleSlot { name, slot }) = &explained.schedule {
                output::data(&format!("started by the schedule {name} for its slot {slot}"))?;
            }
        }
    }
    for next in &explained.next {
        output::say(&format!("next: {next}"));
    }
    Ok(Ending::Ok)
}
