//! `duly schedule create`.

use duly_client::Precondition;
use duly_client::wire::{ScheduleRequest, SubmitRequest};

use super::{connect, show};
use crate::args::{Output, ScheduleCreateArgs};
use crate::commands::task::read_payload;
use crate::exit::Ending;
use crate::output;

pub(super) async fn run(args: ScheduleCreateArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let (name, format, dry_run) = (args.name.clone(), args.client.output, args.dry_run);
    let body = serde_json::to_string(&request(args)?)?;
    if dry_run {
        let preview = client.preview_schedule(body).await?;
        match format {
            Output::Json => output::json(&preview)?,
            Output::Id => {}
            Output::Table => output::data(&show::preview(&name, &preview))?,
        }
        output::say("nothing was created; next: run it without --dry-run");
        return Ok(Ending::Ok);
    }
    let schedule = client.put_schedule(&name, body.clone(), Precondition::Absent).await?;
    match format {
        Output::Json => output::json(&schedule)?,
        Output::Id => output::data(&schedule.name)?,
        Output::Table => {
            let preview = client.preview_schedule(body).await?;
            output::data(&show::preview(&name, &preview))?;
        }
    }
    output::say(&format!("next: duly schedule runs {name}"));
    Ok(Ending::Ok)
}

fn request(args: ScheduleCreateArgs) -> anyhow::Result<ScheduleRequest> {
    let payload = args.data.as_deref().map(read_payload).transpose()?;
    let task = SubmitRequest {
        r#type: args.task_type,
        payload,
        queue: args.queue,
        priority: args.priority,
        retries: args.retries,
        ..SubmitRequest::default()
    };
    Ok(ScheduleRequest {
        name: Some(args.name),
        cron: args.cron,
        every: args.every,
        at: args.at,
        time_zone: args.time_zone,
        task: Some(task),
        overlap: args.overlap,
        misfire: args.misfire,
        catch_up_seconds: args.catch_up.map(|time| time.as_secs_f64()),
        jitter_seconds: args.jitter.map(|time| time.as_secs_f64()),
        start_at: args.start_at,
        end_at: args.end_at,
        note: args.note,
        labels: args.labels.into_iter().collect(),
        ..ScheduleRequest::default()
    })
}
