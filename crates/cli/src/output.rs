//! Printing: data on standard output, talk on standard error.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Write as _};

use comfy_table::{ContentArrangement, Table, presets};
use duly_client::wire::{ProgressView, TaskView};
use duly_core::time::Timestamp;
use serde::Serialize;

/// Prints data for programs and people.
pub(crate) fn data(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        // Whoever read our output has seen enough, as `head` does.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// Prints lines that a task has logged, as they are where they go to a file or a program.
pub(crate) fn log(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let text = if out.is_terminal() { harmless(text).into() } else { Cow::Borrowed(text) };
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// Prints a value as JSON on one line.
pub(crate) fn json_line(value: &impl Serialize) -> anyhow::Result<()> {
    data(&serde_json::to_string(value)?)
}

/// Prints a value as JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> anyhow::Result<()> {
    data(&serde_json::to_string_pretty(value)?)
}

/// Says something to the person at the terminal. Nobody may be listening, which is no fault.
pub(crate) fn say(text: &str) {
    writeln!(std::io::stderr().lock(), "{}", harmless(text)).ok();
}

/// Text from outside without the characters that would steer the terminal.
pub(crate) fn harmless(text: &str) -> String {
    let replace =
        |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c };
    text.chars().map(replace).collect()
}

/// "1 attempt", "2 attempts".
pub(crate) fn count(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Says why a page is short although more may follow.
pub(crate) fn searched(tasks: u32) -> String {
    format!("looked at {} and stopped there; narrow the filter or go on; ", count(tasks, "task"))
}

/// A table in the house style.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header.iter().map(|name| name.to_uppercase()));
    table
}

/// Tasks, one a line.
pub(crate) fn tasks(tasks: &[TaskView]) -> String {
    let mut table = table(&["id", "type", "queue", "status", "attempt", "run at", "error"]);
    for task in tasks {
        let error = task.error.as_ref().map_or("", |error| error.message.as_str());
        table.add_row([
            task.task_id.to_string(),
            task.r#type.clone(),
            task.queue.clone(),
            task.status.to_string(),
            format!("{}/{}", task.attempt, task.retries + 1),
            task.run_at.to_string(),
            first_line(error),
        ]);
    }
    trimmed(&table)
}

/// One task, one field a line.
pub(crate) fn task(task: &TaskView) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    let mut add = |name: &str, value: String| {
        table.add_row([name.to_owned(), value]);
    };
    add("id", task.task_id.to_string());
    add("type", task.r#type.clone());
    add("queue", task.queue.clone());
    add("status", task.status.to_string());
    add("attempt", format!("{} of {}", task.attempt, task.retries + 1));
    add("priority", task.priority.to_string());
    add("run at", task.run_at.to_string());
    add("created at", task.created_at.to_string());
    add("started at", instant(task.started_at));
    add("finished at", instant(task.finished_at));
    add("worker", task.worker.clone().unwrap_or_else(|| "-".to_owned()));
    if let Some(progress) = &task.progress {
        let message = progress.message.as_ref().map(|text| format!(": {text}"));
        add("progress", format!("{}{}", self::progress(progress), message.unwrap_or_default()));
    }
    if task.losses > 0 {
        add("losses", task.losses.to_string());
    }
    for (key, value) in &task.labels {
        add("label", format!("{key}={value}"));
    }
    add("payload", task.payload.get().to_owned());
    if let Some(result) = &task.result {
        add("result", result.get().to_owned());
    }
    if let Some(error) = &task.error {
        add("error", format!("{}: {}", error.code, error.message));
    }
    trimmed(&table)
}

/// How far a task is: "3 of 4 (75%)".
pub(crate) fn progress(progress: &ProgressView) -> String {
    let total = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
    let percent = progress.percent.map(|percent| format!(" ({percent}%)")).unwrap_or_default();
    format!("{}{total}{percent}", progress.done)
}

/// Tables without the blanks at the ends of their lines.
pub(crate) fn trimmed(table: &Table) -> String {
    table.lines().map(|line| harmless(line.trim())).collect::<Vec<_>>().join("\n")
}

/// An instant that may not have come.
pub(crate) fn instant(at: Option<Timestamp>) -> String {
    at.map_or("-".to_owned(), |at| at.to_string())
}

/// The beginning of a text, for a table.
pub(crate) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(60).collect()
}
