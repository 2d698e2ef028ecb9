//! `duly schedule …`: tasks and workflows that run at set times.

mod apply;
mod create;
mod show;

use duly_client::ScheduleQuery;
use duly_client::wire::{BackfillRequest, PauseRequest};
use duly_core::schedule::ScheduleStatus;

use super::connect;
use crate::args::{
    Output, ScheduleBackfillArgs, ScheduleCommand, ScheduleListArgs, ScheduleNameArgs,
    ScheduleNextArgs, SchedulePauseArgs,
};
use crate::exit::Ending;
use crate::output;

pub(crate) fn run(command: ScheduleCommand) -> anyhow::Result<Ending> {
    super::block_on(async {
        match command {
            ScheduleCommand::Create(args) => create::run(*args).await,
            ScheduleCommand::Apply(args) => apply::run(&args).await,
            ScheduleCommand::List(args) => list(args).await,
            ScheduleCommand::Get(args) => get(&args).await,
            ScheduleCommand::Next(args) => next(&args).await,
            ScheduleCommand::Runs(args) => runs(&args).await,
            ScheduleCommand::Pause(args) => pause(args).await,
            ScheduleCommand::Resume(args) => resume(&args).await,
            ScheduleCommand::Trigger(args) => trigger(&args).await,
            ScheduleCommand::Backfill(args) => backfill(&args).await,
            ScheduleCommand::Delete(args) => delete(&args).await,
        }
    })
}

async fn list(args: ScheduleListArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let ScheduleListArgs { status, labels, limit, cursor, client: ref flags } = args;
    let query = ScheduleQuery { status, labels, limit: Some(limit), cursor };
    let page = client.list_schedules(&query).await?;
    match flags.output {
        Output::Json => output::json(&page)?,
        Output::Table if page.items.is_empty() => {
            output::say("no schedules; next: duly schedule create NAME --every 1m --type echo");
        }
        Output::Table => output::data(&show::table(&page.items))?,
        Output::Id => {
            for schedule in &page.items {
                output::data(&schedule.name)?;
            }
        }
    }
    if flags.output != Output::Json {
        if let Some(cursor) = &page.next_cursor {
            output::say(&format!("more: duly schedule list --cursor {cursor}"));
        } else if let Some(first) = page.items.first() {
            output::say(&format!("next: duly schedule runs {}", first.name));
        }
    }
    Ok(Ending::Ok)
}

async fn get(args: &ScheduleNameArgs) -> anyhow::Result<Ending> {
    let schedule = connect(&args.client)?.get_schedule(&args.name).await?;
    show::print(&schedule, args.client.output)?;
    output::say(&format!("next: duly schedule runs {}", schedule.name));
    Ok(Ending::Ok)
}

async fn next(args: &ScheduleNextArgs) -> anyhow::Result<Ending> {
    let next = connect(&args.client)?.next_slots(&args.name, args.count).await?;
    match args.client.output {
        Output::Json => output::json(&next)?,
        Output::Table if next.items.is_empty() => output::say("there are no more runs"),
        Output::Table => output::data(&show::slot_times(&next.time_zone, &next.items))?,
        Output::Id => {
            for time in &next.items {
                output::data(&time.slot.to_string())?;
            }
        }
    }
    if next.status == ScheduleStatus::Paused {
        output::say(&format!("it is paused; next: duly schedule resume {}", args.name));
    }
    Ok(Ending::Ok)
}

async fn runs(args: &ScheduleNameArgs) -> anyhow::Result<Ending> {
    let page = connect(&args.client)?.slot_runs(&args.name).await?;
    match args.client.output {
        Output::Json => output::json(&page)?,
        Output::Table if page.items.is_empty() => {
            output::say(&format!("no runs yet; next: duly schedule next {}", args.name));
        }
        Output::Table => output::data(&show::runs(&page.items))?,
        Output::Id => {
            for id in page.items.iter().filter_map(show::started) {
                output::data(&id)?;
            }
        }
    }
    let first = page.items.iter().find(|slot| slot.task_id.is_some() || slot.workflow_id.is_some());
    if let Some(first) = first {
        output::say(&format!("next: {}", show::look(first)));
    }
    Ok(Ending::Ok)
}

async fn pause(args: SchedulePauseArgs) -> anyhow::Result<Ending> {
    let client = connect(&args.client)?;
    let schedule = client.pause_schedule(&args.name, &PauseRequest { note: args.note }).await?;
    show::print_row(&schedule, args.client.output)?;
    output::say(&format!("next: duly schedule resume {}", schedule.name));
    Ok(Ending::Ok)
}

async fn resume(args: &ScheduleNameArgs) -> anyhow::Result<Ending> {
    let schedule = connect(&args.client)?.resume_schedule(&args.name).await?;
    show::print_row(&schedule, args.client.output)?;
    output::say(&format!("next: duly schedule next {}", schedule.name));
    Ok(Ending::Ok)
}

async fn trigger(args: &ScheduleNameArgs) -> anyhow::Result<Ending> {
    let slot = connect(&args.client)?.trigger_schedule(&args.name).await?;
    match args.client.output {
        Output::Json => output::json(&slot)?,
        Output::Table => output::data(&show::runs(std::slice::from_ref(&slot)))?,
        Output::Id => {
            if let Some(id) = show::started(&slot) {
                output::data(&id)?;
            }
        }
    }
    match slot.skipped {
        Some(reason) => output::say(&format!("nothing was started: {}", reason.sentence())),
        None => output::say(&format!("next: {}", show::look(&slot))),
    }
    Ok(Ending::Ok)
}

async fn backfill(args: &ScheduleBackfillArgs) -> anyhow::Result<Ending> {
    let order = BackfillRequest { from: args.from, to: args.to, dry_run: args.dry_run };
    let answer = connect(&args.client)?.backfill_schedule(&args.name, &order).await?;
    match (args.client.output, answer.task_id) {
        (Output::Json, _) => output::json(&answer)?,
        (_, Some(task)) => output::data(&task.to_string())?,
        (Output::Table, None) if !answer.slots.is_empty() => {
            output::data(&show::backfill(&answer.slots))?;
        }
        (Output::Id, None) => {
            for slot in answer.slots.iter().filter(|slot| !slot.ran_before) {
                output::data(&slot.slot.to_string())?;
            }
        }
        (Output::Table, None) => {}
    }
    if answer.more {
        output::say("there are more slots; continue with a later --from");
    }
    output::say(&match answer.task_id {
        Some(task) => format!("next: duly task get {task} --wait"),
        None if answer.slots.is_empty() => "there is no slot in this time".to_owned(),
        None => "nothing was run; next: run it without --dry-run".to_owned(),
    });
    Ok(Ending::Ok)
}

async fn delete(args: &ScheduleNameArgs) -> anyhow::Result<Ending> {
    connect(&args.client)?.delete_schedule(&args.name).await?;
    output::say(&format!("deleted {}; next: duly schedule list", args.name));
    Ok(Ending::Ok)
}
