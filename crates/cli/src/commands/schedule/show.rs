//! Prints schedules and their slots.

use duly_client::wire::{BackfillSlotView, SchedulePreview, ScheduleView, SlotTime, SlotView};
use duly_core::schedule::SkipReason;
use serde::Serialize;

use crate::args::Output;
use crate::output::{self, Fields, Paint};

/// Prints one schedule, one field per line.
pub(super) fn print(schedule: &ScheduleView, format: Output) -> anyhow::Result<()> {
    match format {
        Output::Json => output::json(schedule),
        Output::Id => output::data(&schedule.name),
        Output::Table => output::data(&fields(schedule)?),
    }
}

/// Prints one schedule as a row of the list.
pub(super) fn print_row(schedule: &ScheduleView, format: Output) -> anyhow::Result<()> {
    match format {
        Output::Json => output::json(schedule),
        Output::Id => output::data(&schedule.name),
        Output::Table => output::data(&table(std::slice::from_ref(schedule))),
    }
}

pub(super) fn table(schedules: &[ScheduleView]) -> String {
    let header = ["name", "status", "runs", "next", "note"];
    let mut table = output::table(&header)
        .shorten(&["note"], 8)
        .shorten(&["runs"], 12)
        .leave_out(&["note", "status"]);
    for schedule in schedules {
        table.add_row([
            schedule.name.clone(),
            schedule.status.to_string(),
            schedule.description.clone(),
            output::instant(schedule.next_at),
            output::first_line(schedule.note.as_deref().unwrap_or("-")),
        ]);
    }
    output::render(&table)
}

fn fields(schedule: &ScheduleView) -> anyhow::Result<String> {
    let mut fields = Fields::default();
    fields.add("name", schedule.name.clone());
    fields.add("id", schedule.schedule_id.to_string());
    fields.add("status", schedule.status.to_string());
    fields.add("runs", schedule.description.clone());
    for (name, value) in [("cron", &schedule.cron), ("every", &schedule.every)] {
        if let Some(value) = value {
            fields.add(name, value.clone());
        }
    }
    if let Some(at) = schedule.at {
        fields.add("at", at.to_string());
    }
    fields.add("time zone", schedule.time_zone.clone());
    fields.add("next", output::instant(schedule.next_at));
    fields.add("overlap", schedule.overlap.to_string());
    fields.add("misfire", schedule.misfire.to_string());
    fields.add("catch up", format!("{} s", schedule.catch_up_seconds));
    if schedule.jitter_seconds > 0.0 {
        fields.add("jitter", format!("{} s", schedule.jitter_seconds));
    }
    for (name, instant) in [("start at", schedule.start_at), ("end at", schedule.end_at)] {
        if let Some(instant) = instant {
            fields.add(name, instant.to_string());
        }
    }
    if let Some(task) = &schedule.task {
        fields.add("task", json(task)?);
    }
    if let Some(workflow) = &schedule.workflow {
        fields.add("workflow", json(workflow)?);
    }
    if let Some(note) = &schedule.note {
        fields.add("note", note.clone());
    }
    for (key, value) in &schedule.labels {
        fields.add("label", format!("{key}={value}"));
    }
    if schedule.managed {
        fields.add("managed", "by the configuration file of the server".to_owned());
    }
    fields.add("version", format!("{}, generation {}", schedule.version, schedule.generation));
    fields.add("created at", schedule.created_at.to_string());
    fields.add("updated at", schedule.updated_at.to_string());
    Ok(fields.render())
}

fn json(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string(value)?)
}

/// What a definition means.
pub(super) fn preview(name: &str, preview: &SchedulePreview) -> String {
    let mut text = format!("{name}: {}", preview.description);
    text += &format!("\n{}", slot_times(&preview.time_zone, &preview.next));
    if let Some(note) = &preview.dst_note {
        text += &format!("\n{note}");
    }
    text
}

/// The next slots, in both times.
pub(super) fn slot_times(zone: &str, slots: &[SlotTime]) -> String {
    let mut table = output::table(&["next run", zone]);
    for SlotTime { slot, local } in slots {
        table.add_row([slot.to_string(), local.clone()]);
    }
    output::render(&table)
}

/// Decided slots, one per line: what each has started, or why it was skipped.
pub(super) fn runs(slots: &[SlotView]) -> String {
    let header = ["slot", "status", "started"];
    let mut table = output::table(&header).paint("status", Paint::STATUS).wrap_last();
    for slot in slots {
        let status = match (&slot.status, slot.skipped) {
            (Some(status), _) => status.clone(),
            (None, Some(_)) => "skipped".to_owned(),
            (None, None) => "deleted".to_owned(),
        };
        let why_not = || match slot.skipped {
            Some(reason) => format!("{reason}: {}", short(reason)),
            None => "-".to_owned(),
        };
        table.add_row([slot.slot.to_string(), status, started(slot).unwrap_or_else(why_not)]);
    }
    output::render(&table)
}

/// The slots of a backfill.
pub(super) fn backfill(slots: &[BackfillSlotView]) -> String {
    let mut table = output::table(&["slot", "would run"]);
    for BackfillSlotView { slot, ran_before } in slots {
        let would_run = if *ran_before { "no, it has run" } else { "yes" };
        table.add_row([slot.to_string(), would_run.to_owned()]);
    }
    output::render(&table)
}

fn short(reason: SkipReason) -> &'static str {
    reason.sentence().trim_end_matches('.')
}

/// The id of what a slot has started.
pub(super) fn started(slot: &SlotView) -> Option<String> {
    let task = slot.task_id.map(|id| id.to_string());
    task.or_else(|| slot.workflow_id.map(|id| id.to_string()))
}

/// The command that shows what a slot has started.
pub(super) fn look(slot: &SlotView) -> String {
    match (slot.task_id, slot.workflow_id) {
        (Some(task), _) => format!("duly task get {task} --wait"),
        (None, Some(workflow)) => format!("duly workflow get {workflow}"),
        (None, None) => "duly schedule list".to_owned(),
    }
}
