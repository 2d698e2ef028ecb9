//! Printing: data on standard output, messages on standard error.

pub(crate) mod color;
mod fields;
mod table;
mod task;
mod text;

use std::borrow::Cow;
use std::io::{IsTerminal as _, Write as _};

use duly_core::time::Timestamp;
use serde::Serialize;

pub(crate) use self::color::Paint;
pub(crate) use self::fields::Fields;
pub(crate) use self::table::Table;
pub(crate) use self::task::{failure, progress, task, tasks};

/// Prints data for programs and people.
pub(crate) fn data(text: &str) -> anyhow::Result<()> {
    line(text).map(drop)
}

/// Prints one of many lines; whether there still is a reader.
pub(crate) fn line(text: &str) -> anyhow::Result<bool> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        // The reader has closed the pipe, as `head` does.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        outcome => Ok(outcome.map(|()| true)?),
    }
}

/// Prints log lines of a task; unchanged if the output is a file or a pipe.
pub(crate) fn log(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let text = if out.is_terminal() { sanitize(text).into() } else { Cow::Borrowed(text) };
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

/// Prints a message on standard error. A closed standard error is not a failure.
pub(crate) fn say(text: &str) {
    writeln!(std::io::stderr().lock(), "{}", sanitize(text)).ok();
}

/// Prints an error message.
pub(crate) fn error(text: &str) {
    writeln!(std::io::stderr().lock(), "{} {}", color::red("error:"), sanitize(text)).ok();
}

/// External text without the characters that would control the terminal.
pub(crate) fn sanitize(text: &str) -> String {
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

/// Explains why a page is short although more may follow.
pub(crate) fn partial_page_note(tasks: u32) -> String {
    format!("read {} and stopped there; narrow the filter or continue; ", count(tasks, "task"))
}

/// A table in the house style.
pub(crate) fn table(header: &[&str]) -> Table {
    Table::new(header)
}

/// A table that fits the terminal.
pub(crate) fn render(table: &Table) -> String {
    table.render(columns(), may_color())
}

/// A text at least so wide, in its colour if standard output has colours.
pub(crate) fn painted(text: &str, width: usize, paint: Paint) -> String {
    let padded = format!("{text:width$}");
    if may_color() { paint.apply(text, &padded) } else { padded }
}

/// The width of standard output: `COLUMNS`, else the terminal's width; none for a file or a pipe.
fn columns() -> Option<usize> {
    let requested = variable("COLUMNS").and_then(|text| text.parse().ok());
    let terminal = || {
        let out = std::io::stdout();
        let size = rustix::termios::tcgetwinsize(&out).ok().filter(|_| out.is_terminal());
        size.map(|size| usize::from(size.ws_col))
    };
    requested.or_else(terminal).filter(|columns| *columns > 0)
}

fn may_color() -> bool {
    color::is_wanted(&std::io::stdout())
}

/// An environment variable that applies to all programs.
#[expect(clippy::disallowed_methods, reason = "not a setting of this program")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// An instant, or `-` if there is none.
pub(crate) fn instant(at: Option<Timestamp>) -> String {
    at.map_or("-".to_owned(), |at| at.to_string())
}

/// The beginning of a text, for a table.
pub(crate) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(60).collect()
}
