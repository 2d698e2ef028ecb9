//! Tasks as text.

use duly_client::wire::{ProgressView, TaskError, TaskView};

use super::color::Paint;
use super::fields::Fields;
use super::{Table, instant, render};

/// Tasks, one per line.
pub(crate) fn tasks(tasks: &[TaskView]) -> String {
    let header = ["id", "type", "queue", "status", "attempt", "run at", "error"];
    let mut table = Table::new(&header)
        .shorten(&["type", "queue", "error"], 12)
        .leave_out(&["run at", "attempt", "queue"])
        .paint("status", Paint::STATUS);
    for task in tasks {
        table.add_row([
            task.task_id.to_string(),
            task.r#type.clone(),
            task.queue.clone(),
            task.status.to_string(),
            format!("{}/{}", task.attempt, task.retries + 1),
            task.run_at.to_string(),
            task.error.as_ref().map_or_else(String::new, |error| error.message.clone()),
        ]);
    }
    render(&table)
}

/// One task, one field per line.
pub(crate) fn task(task: &TaskView) -> String {
    let mut fields = Fields::default();
    fields.add("id", task.task_id.to_string());
    fields.add("type", task.r#type.clone());
    fields.add("queue", task.queue.clone());
    fields.add_painted("status", task.status.to_string(), Paint::STATUS);
    fields.add("attempt", format!("{} of {}", task.attempt, task.retries + 1));
    fields.add("priority", task.priority.to_string());
    fields.add("run at", task.run_at.to_string());
    fields.add("created at", task.created_at.to_string());
    fields.add("leased at", instant(task.leased_at));
    fields.add("started at", instant(task.started_at));
    fields.add("finished at", instant(task.finished_at));
    fields.add("worker", task.worker.clone().unwrap_or_else(|| "-".to_owned()));
    if let Some(progress) = &task.progress {
        let message = progress.message.as_ref().map(|text| format!(": {text}"));
        fields.add(
            "progress",
            format!("{}{}", self::progress(progress), message.unwrap_or_default()),
        );
    }
    if task.losses > 0 {
        fields.add("losses", task.losses.to_string());
    }
    for (key, value) in &task.labels {
        fields.add("label", format!("{key}={value}"));
    }
    fields.add("payload", task.payload.get().to_owned());
    if let Some(result) = &task.result {
        fields.add("result", result.get().to_owned());
    }
    if let Some(error) = &task.error {
        fields.add("error", failure(error));
    }
    fields.render()
}

/// The progress of a task: "3 of 4 (75%)".
pub(crate) fn progress(progress: &ProgressView) -> String {
    let total = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
    let percent = progress.percent.map(|percent| format!(" ({percent}%)")).unwrap_or_default();
    format!("{}{total}{percent}", progress.done)
}

/// An error as text: its code, and its message if it has one.
pub(crate) fn failure(error: &TaskError) -> String {
    match error.message.as_str() {
        "" => error.code.clone(),
        message => format!("{}: {message}", error.code),
    }
}
